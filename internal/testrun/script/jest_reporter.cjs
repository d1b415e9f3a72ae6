// The reporter of jest; it lives in the process that starts the workers.
'use strict'
const record = require('./record.cjs')

const outcome = { passed: 'passed', failed: 'failed' }

module.exports = class {
  onTestResult (test, result) {
    if (result.testExecError || result.testResults.length === 0) record.broken(test.path)
    for (const t of result.testResults) {
      record.report(test.path, [...t.ancestorTitles, t.title], outcome[t.status] ?? 'skipped')
    }
  }

  onRunComplete () { record.finish(1) }
}
