// Loaded before each test file, in its process: plants a test that must fail,
// and says when the file could not be loaded to its end.
import assert from 'node:assert'
import { writeSync } from 'node:fs'
import test from 'node:test'
import { pathToFileURL } from 'node:url'

if (process.env.NODE_TEST_CONTEXT) {
  const file = process.argv[1]
  const fails = () => { assert.strictEqual([1, 2, 3].length, 0, 'planted') }
  test('__CANARY__ ' + file, async () => {
    // After the file, and all that it loads, has had its way. A file that
    // waits for its own tests is not waited for.
    let timer
    const late = new Promise((resolve) => { timer = setTimeout(resolve, 100) })
    await Promise.race([import(pathToFileURL(file)).catch(() => {}), late])
    clearTimeout(timer)
    fails()
  })
  process.on('uncaughtExceptionMonitor', () => { writeSync(1, '\n__CANARY__ crashed ' + file + '\n') })
}
