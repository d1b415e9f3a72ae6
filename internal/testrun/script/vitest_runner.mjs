// Runs vitest through its own interface, with our reporter, and plants a test
// that must fail in each file.
import path from 'node:path'
import { pathToFileURL } from 'node:url'
import record from './record.cjs'

const { root, script, names } = record.order
const outcome = { pass: 'passed', passed: 'passed', fail: 'failed', failed: 'failed' }

// One reporter for the interface before version 3 and the one since.
const reporter = {
  onTestRunEnd (modules, errors) {
    for (const m of modules) {
      const tests = [...m.children.allTests()]
      if (tests.length === 0 || m.errors().length > 0) record.broken(m.moduleId)
      for (const t of tests) {
        const chain = [t.name]
        for (let p = t.parent; p && p.type === 'suite'; p = p.parent) chain.unshift(p.name)
        record.report(m.moduleId, chain, outcome[t.result()?.state] ?? 'skipped')
      }
      for (const s of m.children.allSuites()) {
        if (s.errors().length > 0 && !record.red(m.moduleId)) record.broken(m.moduleId)
      }
    }
    if (errors.length > 0) record.fatal('an error outside of all tests: ' + errors[0].message)
  },
  onFinished (files = [], errors = []) {
    for (const file of files) {
      let tests = 0
      const visit = (task, chain) => {
        if (task.type === 'suite' && task.tasks) task.tasks.forEach((t) => visit(t, [...chain, t.name]))
        else { tests++; record.report(file.filepath, chain, outcome[task.result?.state] ?? 'skipped') }
      }
      file.tasks.forEach((t) => visit(t, [t.name]))
      if (tests === 0 || file.result?.state === 'fail' && !record.red(file.filepath)) record.broken(file.filepath)
    }
    if (errors.length > 0) record.fatal('an error outside of all tests: ' + errors[0].message)
  }
}

const vitest = await import(pathToFileURL(script))
const old = Number(vitest.version?.split('.')[0] ?? 0) < 3
delete reporter[old ? 'onTestRunEnd' : 'onFinished']
process.chdir(root)
const instance = await vitest.startVitest('test', names, {
  root, run: true, watch: false, color: false, reporters: ['default', reporter], coverage: { enabled: false }, maxWorkers: 2, minWorkers: 1
}, {
  plugins: [{ name: 'planted', config: () => ({ test: { setupFiles: [path.join(import.meta.dirname, 'vitest_plant.mjs')] } }) }]
})
await instance?.close()
record.finish(1)
process.exit(1)
