// The reporter of `node --test`. It lives in the process that starts one
// process for each test file, and never imports any of them.
import record from './record.cjs'

const { canary } = record.order
const mark = { pass: '✔', fail: '✖' }

export default async function * report (source) {
  const names = []
  const crashed = new Set()
  for await (const { type, data } of source) {
    if (type === 'test:start') {
      names.length = data.nesting
      names.push(data.name)
      continue
    }
    if (type === 'test:stderr' || type === 'test:stdout') {
      const crash = data.message.match(new RegExp(canary + ' crashed (.*)'))
      if (crash) crashed.add(crash[1])
      else yield data.message
      continue
    }
    if (type !== 'test:pass' && type !== 'test:fail') continue
    const failed = type === 'test:fail'
    const chain = [...names.slice(0, data.nesting), data.name]
    // The planted test is not defined in the file that it belongs to: its name says which.
    const at = chain[0].startsWith(canary) ? chain[0].slice(canary.length + 1) : data.file
    if (data.nesting === 0 && (data.name === at || data.file === undefined)) {
      if (failed && !record.red(data.name)) record.broken(data.name)
    } else if (data.details?.type === 'suite') {
      if (failed && !record.red(at)) record.report(at, chain, 'failed')
    } else {
      const left = data.skip !== undefined || data.todo !== undefined
      record.report(at, chain, left ? 'skipped' : failed ? 'failed' : 'passed')
    }
    if (chain[0].startsWith(canary)) continue
    yield `${'  '.repeat(data.nesting)}${mark[failed ? 'fail' : 'pass']} ${data.name}\n`
    if (failed) {
      const error = data.details?.error
      yield `${error?.cause?.stack ?? error?.stack ?? error}\n`
    }
  }
  for (const file of crashed) {
    if (!record.red(file)) record.broken(file)
  }
  record.finish(1)
}
