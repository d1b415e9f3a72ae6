// Runs jest with our reporter, and plants a test that must fail in each file.
'use strict'
const { createRequire } = require('node:module')
const path = require('node:path')
const record = require('./record.cjs')

const { root, script, names, tmp } = record.order
const from = createRequire(createRequire(script).resolve('jest-cli'))

async function main () {
  const { config } = await from('jest-config').readInitialOptions(undefined, { packageRootOrConfig: root })
  if (config.projects) return record.fatal('jest is configured with several projects: name one command for each with --test')
  const setup = [].concat(config.setupFilesAfterEnv ?? []).map((s) => s.replace('<rootDir>', config.rootDir ? path.resolve(root, config.rootDir) : root))
  await from('jest-cli').run([
    '--ci', '--colors=false', '--watchman=false', '--maxWorkers=2', '--cacheDirectory=' + path.join(tmp, 'jest'),
    '--reporters=default', '--reporters=' + path.join(__dirname, 'jest_reporter.cjs'),
    ...[...setup, path.join(__dirname, 'jest_plant.cjs')].map((s) => '--setupFilesAfterEnv=' + s), ...names
  ], root)
}

main().catch((err) => { record.fatal('jest did not start: ' + err.message) })
