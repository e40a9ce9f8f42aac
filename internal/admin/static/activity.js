// The screen Activity: searches the audit log.

import {errorText, exportAddress, get} from './api.js'
import {findProblems} from './dialogs.js'
import {button, h, setForeign, setNodes, setTime} from './dom.js'
import {bytes, filled, isolated, number, path, text, time, visible} from './format.js'
import {banClient, debugClient, host} from './now.js'
import {may} from './role.js'
import {Table} from './table.js'
import {events, outcomes, word} from './words.js'

const perPage = 100

// Logins of users and of administrators, as a value of the menu of events.
const logins = 'login,admin_login'

// How many parts of the log one search reads until it has found something. The server reads a bounded part for each
// request.
const partsAtOnce = 8

// target returns what an administrator has changed.
const target = e => e.banned || e.administrator && (e.user || e.session) || '–'

// create returns the screen. The search is in the address of the page, so that it can be shared.
export function create({go, replace}) {
  const input = (name, properties = {}) => h('input', {id: `find-${name}`, name, autocomplete: 'off', autocapitalize: 'none', spellcheck: 'false', ...properties})
  const inputs = {
    user: input('user'), tenant: input('tenant'), path: input('path', {dir: 'auto'}), address: input('address', {dir: 'ltr'}),
    event: h('select', {id: 'find-event', name: 'event'}),
    outcome: h('select', {id: 'find-outcome', name: 'outcome'}),
    from: input('from', {type: 'datetime-local', step: 1}), to: input('to', {type: 'datetime-local', step: 1}),
  }
  const failed = button('reason-logins', () => {
    clear()
    inputs.event.value = logins
    inputs.outcome.value = 'failed'
    search()
  }, {id: 'failed-logins'})
  const form = h('form', {class: 'panel search', role: 'search'},
    h('div', {class: 'columns'}, ...Object.entries(inputs).map(([name, control]) => h('div', {class: 'field'}, h('label', {for: control.id, text: name}), control))),
    h('div', {class: 'buttons'}, failed, button('clear', () => {
      clear()
      search()
    }), h('button', {text: 'search', class: 'primary'})))

  function clear() {
    for (const control of Object.values(inputs)) control.value = ''
  }

  function menus() {
    for (const [name, list] of [['event', events], ['outcome', outcomes]]) {
      const {value} = inputs[name]
      const options = Object.entries(list).map(([key, id]) => new Option(text(id), key, false, key === value))
      if (name === 'event') options.unshift(new Option(`${text('event-login')}, ${text('event-admin-login')}`, logins, false, logins === value))
      inputs[name].replaceChildren(new Option(text('all'), '', false, !value), ...options)
    }
  }

  const note = h('div', {class: 'notes', role: 'status'})
  const table = new Table({
    id: 'activity', plain: true, key: e => e.key, subject: ['time', 'event'],
    columns: {
      time: (cell, e) => setTime(cell, e.time, time),
      event: (cell, e) => setNodes(cell, word(events, e.event)),
      outcome: (cell, e) => setNodes(cell, h('span', {class: `badge ${e.outcome === 'ok' ? 'quiet' : 'bad'}`}, word(outcomes, e.outcome))),
      user: (cell, e) => setForeign(cell, e.administrator || e.user),
      tenant: (cell, e) => setForeign(cell, e.tenant),
      address: (cell, e) => setForeign(cell, e.client),
      path: (cell, e) => setNodes(cell, ...e.to_path ? [path(e.path), ' → ', path(e.to_path)] : [e.path ? path(e.path) : visible(target(e))]),
      size: (cell, e) => setNodes(cell, e.bytes === undefined ? '–' : isolated(bytes(e.bytes))),
    },
    actions: e => {
      const actions = []
      if (e.path) actions.push(['same-file', () => go('activity', {path: e.path, tenant: e.tenant})])
      if (e.administrator || !/[.:]/.test(e.client ?? '')) return actions // not the address of a client
      actions.push(['find-problems', () => findProblems(host(e.client), e.time, [e.client])])
      if (!may('operator')) return actions
      actions.push(['debug', () => debugClient(host(e.client))], ['ban-address', () => banClient(host(e.client)), 'danger'])
      if (e.user) actions.push(['ban-user', () => banClient(e.tenant ? `${e.user}@${e.tenant}` : e.user), 'danger'])
      return actions
    },
  })
  const [csv, lines] = ['csv', 'jsonl'].map(format => h('a', {class: 'button', download: true, id: `export-${format}`}))
  table.tools.append(csv, lines)
  const previous = button('newer', () => turn(-1))
  const next = button('older', () => turn(1), {id: 'older'})

  // parameters returns the search, with times in UTC.
  function parameters() {
    const values = Object.fromEntries(Object.entries(inputs).map(([name, {value}]) => [name, value.trim()]))
    for (const name of ['from', 'to']) if (values[name]) values[name] = new Date(values[name]).toISOString()
    return values
  }

  let pages = [''], page = 0, cursor = '', answer, searching, problem
  async function load() {
    searching?.abort()
    const controller = searching = new AbortController()
    table.node.setAttribute('aria-busy', 'true')
    try {
      let next = pages[page], read = 0
      for (let part = 0; part < partsAtOnce; part++) {
        answer = await get('activity', {...parameters(), cursor: next, limit: perPage}, controller.signal)
        answer.searched_bytes = read += answer.searched_bytes
        next = answer.next
        if (answer.events.length > 0 || !next) break
        note.replaceChildren(h('p', {class: 'count'}, ...filled('searched-part', {Size: isolated(bytes(read))})))
      }
      problem = undefined
      cursor = answer.next ?? ''
      const seen = new Map()
      for (const e of answer.events) { // identical events are numbered to get distinct keys
        const line = JSON.stringify(e)
        seen.set(line, (seen.get(line) ?? 0) + 1)
        e.key = `${line} ${seen.get(line)}`
      }
    } catch (error) {
      if (error.name === 'AbortError') return
      problem = error
    }
    table.node.removeAttribute('aria-busy')
    render()
  }

  function render() {
    csv.replaceChildren(text('export'), ' CSV')
    lines.replaceChildren(text('export'), ' JSON')
    csv.href = exportAddress('activity/export', {...parameters(), format: 'csv'})
    lines.href = exportAddress('activity/export', {...parameters(), format: 'jsonl'})
    const notes = problem ? [h('p', {class: 'problem'}, ...errorText(problem, {}))] : []
    if (answer && !problem) {
      table.update(answer.events, null)
      previous.hidden = page === 0
      next.hidden = !cursor
      const sources = answer.sources ?? []
      const without = sources.filter(({reason}) => reason)
      const nowhere = sources.every(({file}) => !file)
      if (nowhere) notes.push(h('p', {class: 'note warn'}, text('no-audit-file')))
      for (const {replica, reason} of nowhere && sources.length === 1 ? [] : without) notes.push(h('p', {class: 'note warn'}, text('replica'), ' ', isolated(number(replica)), ': ', visible(reason, 'en')))
      if (answer.searched_bytes) notes.push(h('p', {class: 'count'}, ...filled(answer.complete === false ? 'searched-part' : 'searched', {Size: isolated(bytes(answer.searched_bytes))})))
    }
    note.replaceChildren(...notes)
  }

  function turn(by) {
    if (by > 0) pages[page + 1] = cursor
    page += by
    table.heading.focus()
    load()
  }

  // search starts a new search, and writes it into the address of the page.
  function search() {
    replace('activity', Object.fromEntries(Object.entries(inputs).map(([name, {value}]) => [name, value])))
    ;[pages, page] = [[''], 0]
    return load()
  }

  form.addEventListener('submit', event => {
    event.preventDefault()
    search()
  })

  menus()
  return {
    node: h('div', {}, form, note, table.node, h('div', {class: 'pages'}, previous, next)),
    show(given) {
      for (const [name, control] of Object.entries(inputs)) control.value = given[name] ?? ''
      ;[pages, page] = [[''], 0]
      load()
    },
    translate() {
      menus()
      render()
    },
  }
}
