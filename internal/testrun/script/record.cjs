// The record of a run: ids and outcomes, one JSON object a line with the
// order's nonce, to a descriptor apart from what the tests print. Only the
// runner's own process loads this file; the order is read once from a pipe.
'use strict'
const fs = require('node:fs')
const path = require('node:path')

const order = JSON.parse(fs.readFileSync(10, 'utf8'))
fs.closeSync(10)
const { root, canary } = order
const write = fs.writeSync

const outcomes = new Map()
const planted = new Map() // file -> whether its planted test failed
const times = new Map()

function send (kind, fields) {
  const data = Buffer.from(JSON.stringify({ ...fields, n: order.nonce, k: kind }) + '\n')
  for (let at = 0; at < data.length;) {
    try {
      at += write(9, data, at)
    } catch (err) {
      if (err.code !== 'EAGAIN') throw err
    }
  }
}

function relative (file) {
  return path.relative(root, file).split(path.sep).join('/')
}

// report takes one test: its file, the names from the outside in, and what
// became of it.
function report (file, names, outcome) {
  const where = relative(file)
  if (!planted.has(where)) planted.set(where, false)
  const name = names.join(' > ')
  if (name.includes(canary)) {
    if (outcome === 'failed') planted.set(where, true)
    return
  }
  let id = where + '::' + name
  const time = (times.get(id) || 0) + 1
  times.set(id, time)
  if (time > 1) id += '#' + time
  outcomes.set(id, outcome)
  send('outcome', { id, o: outcome })
}

// broken takes a file that could not be loaded, or whose process failed
// although none of its tests did.
function broken (file) {
  const id = relative(file)
  planted.delete(id)
  outcomes.set(id, 'error')
  send('outcome', { id, o: 'error' })
}

function red (file) {
  const where = relative(file) + '::'
  for (const [id, outcome] of outcomes) {
    if (id.startsWith(where) && outcome === 'failed') return true
  }
  return false
}

// finish closes the record. Each file's planted test makes the status 1.
function finish (exit) {
  const ids = [...outcomes.keys()].filter((id) => id.includes('::'))
  for (let i = 0; i < ids.length; i += 500) send('collected', { ids: ids.slice(i, i + 500) })
  if (outcomes.size > 0 && [...planted.values()].every(Boolean)) send('canary', { o: 'failed' })
  send('done', { exit, outcomes: outcomes.size, collected: ids.length })
}

module.exports = { order, report, broken, red, finish, fatal: (why) => send('fatal', { why }) }
