// The screen Now: what clients do at the moment, and graphs of the last hour.

import {call, get} from './api.js'
import {Chart} from './chart.js'
import {announce, ask, ban, banTime, complain, findProblems} from './dialogs.js'
import {button, h, set, setBadge, setForeign, setNodes, setPath, setTime} from './dom.js'
import {bytes, isolated, languageName, number, of, percent, rough, speed, speedText, text, time, visible} from './format.js'
import {may} from './role.js'
import {Table} from './table.js'
import {directions, problemWords, word} from './words.js'

// Milliseconds between two requests for the history, and for the sessions that a filter finds.
const historyEvery = 10_000
const filterEvery = 3_000

// setPart shows a part of a whole as text and as a bar. Screen readers skip the bar, because it only repeats
// the text.
export function setPart(cell, part, whole, ...nodes) {
  if (!cell.firstChild) cell.append(h('span'), h('progress', {'aria-hidden': 'true'}))
  const [label, bar] = cell.children
  setNodes(label, ...nodes)
  bar.hidden = !whole
  bar.max = whole || 1
  bar.value = part
}

function progress(cell, {bytes: moved, size}) {
  const whole = [isolated(...of(bytes(moved), bytes(size ?? 0))), ' (', isolated(percent(Math.min(moved / size, 1))), ')']
  setPart(cell, moved, size, ...size > 0 ? whole : [isolated(bytes(moved))])
}

// host returns an address without its port.
export const host = remote => remote.replace(/:\d+$/, '').replace(/^\[|\]$/g, '')
const account = ({user, tenant}) => tenant ? `${user}@${tenant}` : user

// debugClient lets the server log everything about an address for ten minutes.
export async function debugClient(address) {
  try {
    await call('PUT', `debug?${new URLSearchParams({address, time: '10m'})}`)
    announce(text('debugging'))
  } catch (error) {
    complain(error)
  }
}

// banClient asks for how long to ban an address or a user.
export function banClient(name) {
  const menu = banTime({id: 'ban-time'})
  return ask({
    question: 'ban-question', action: 'ban', subject: [name], done: 'banned-now',
    content: [h('p', {class: 'field'}, h('label', {for: 'ban-time', text: 'ban-for'}), menu)], act: () => ban(name, menu.value),
  })
}

// clientActions returns what the reader may do about a session.
export function clientActions(s) {
  const subject = [s.user, s.remote].filter(part => part)
  const actions = [['find-problems', () => findProblems(host(s.remote), s.since, subject)]]
  actions.push(['activity', () => s.go(s.user ? {user: s.user, tenant: s.tenant} : {address: host(s.remote)})])
  if (!may('operator')) return actions
  actions.push(['debug', () => debugClient(host(s.remote))])
  actions.push(['disconnect', () => ask({
    question: 'disconnect-question', action: 'disconnect', subject, done: 'disconnected', gone: 'session-gone',
    act: () => call('DELETE', `sessions/${encodeURIComponent(s.id)}`),
  }), 'danger'])
  actions.push(['ban-address', () => banClient(host(s.remote)), 'danger'])
  if (s.user) actions.push(['ban-user', () => banClient(account(s)), 'danger'])
  return actions
}

const foreign = name => (cell, item) => setForeign(cell, item[name])
const at = name => (cell, item) => setTime(cell, item[name], time)
const who = {user: foreign('user'), tenant: foreign('tenant'), address: foreign('remote')}
const older = (a, b) => a.since < b.since ? -1 : a.since > b.since ? 1 : 0

// create returns the screen. go opens another one.
export function create({go}) {
  const openActivity = parameters => go('activity', parameters)
  const charts = {
    sessions: new Chart('sessions', [{name: 'sessions', color: 'blue', format: rough, node: n => isolated(rough(n))}]),
    speed: new Chart('speed', [
      {name: 'upload', color: 'blue', format: speedText, node: speed}, {name: 'download', color: 'orange', format: speedText, node: speed},
    ], {binary: true}),
    logins: new Chart('logins', [
      {name: 'event-login', color: 'green', format: rough, node: n => isolated(rough(n))},
      {name: 'reason-logins', color: 'red', format: rough, node: n => isolated(rough(n))},
    ]),
    errors: new Chart('errors', [{name: 'errors', color: 'red', format: rough, node: n => isolated(rough(n))}]),
  }
  const transfers = new Table({
    id: 'transfers', key: t => `${t.session} ${t.since}`, subject: ['path', 'user'],
    columns: {
      path: (cell, t) => setPath(cell, t.path), ...who,
      direction: (cell, t) => setNodes(cell, word(directions, t.direction)),
      progress, speed: (cell, t) => setNodes(cell, speed(t.bytes_per_second)), since: at('since'),
    },
    actions: t => clientActions({...t, id: t.session, go: openActivity}),
  })
  const sessions = new Table({
    id: 'sessions', key: s => s.id, subject: ['user', 'address'],
    columns: {
      ...who,
      language: (cell, s) => set(cell, languageName(s.language)),
      encryption: (cell, s) => setBadge(cell, s.tls ? 'good' : 'warn', s.tls ? 'TLS' : text('unencrypted')),
      command: foreign('command'), since: at('since'), 'last-activity': at('last_active'),
    },
    actions: s => clientActions({...s, go: openActivity}),
  })
  const words = h('input', {type: 'search', id: 'words', label: 'filter', hint: 'filter', autocomplete: 'off', spellcheck: 'false'})
  sessions.tools.append(words)

  const tenant = h('select', {id: 'uploads-tenant', label: 'tenant'})
  const uploads = new Table({
    id: 'uploads', key: u => u.id, subject: ['path', 'user'],
    columns: {
      path: (cell, u) => setPath(cell, u.path), user: foreign('user'),
      size: (cell, u) => setNodes(cell, u.bytes === null ? '–' : isolated(bytes(u.bytes))), 'last-data': at('last_part'),
    },
    actions: u => may('operator') ? [['delete', () => ask({
      question: 'delete-question', action: 'delete', subject: [u.path, u.user], done: 'deleted', gone: 'upload-gone',
      act: () => call('DELETE', `uploads/${encodeURIComponent(u.tenant)}/${encodeURIComponent(u.id)}`),
    }).then(showUploads), 'danger']] : [],
  })
  uploads.tools.append(tenant, button('show', showUploads, {id: 'show-uploads'}))

  async function showUploads() {
    try {
      const answer = await get('uploads', {tenant: tenant.value})
      uploads.update(answer.uploads.filter(u => ['interrupted', 'stalled'].includes(u.state)))
      if (answer.unanswered.length > 0) complain({status: 502, message: answer.unanswered.map(({reason}) => reason).join(' – ')})
    } catch (error) {
      complain(error)
    }
  }

  // showHistory shows the graphs.
  let history
  async function showHistory() {
    if (document.hidden) return
    try {
      history = await get('history')
    } catch {
      return // the state of the connection is shown already
    }
    const {interval, until, series} = history
    const end = Math.floor(new Date(until) / 1000)
    const times = series.sessions.map((_, i, {length}) => end - (length - 1 - i) * interval)
    const rate = list => list.map(value => value === null ? null : value / interval)
    charts.sessions.update(times, [series.sessions])
    charts.speed.update(times, [rate(series.uploads_bytes), rate(series.downloads_bytes)])
    charts.logins.update(times, [series.logins, series.failed_logins])
    charts.errors.update(times, [series.errors])
  }

  // showSessions shows the sessions that contain all words of the filter. The state has the first sessions only,
  // so a filter fetches all of them.
  let state, all, fetched = 0
  async function showSessions() {
    const wanted = words.value.toLocaleLowerCase().split(/\s+/).filter(word => word)
    let list = state.sessions
    if (wanted.length > 0 && state.totals.sessions > list.length) {
      if (Date.now() - fetched > filterEvery) {
        fetched = Date.now()
        all = await get('sessions').catch(() => all)
      }
      list = all ?? list
    }
    const matches = s => {
      const line = [s.user, s.tenant, s.remote, s.transfer?.path].join('\n').toLocaleLowerCase()
      return wanted.every(word => line.includes(word))
    }
    const matching = list.filter(matches)
    sessions.update(matching.sort(older), wanted.length > 0 ? matching.length : state.totals.sessions)
  }
  words.addEventListener('input', () => state && showSessions())

  const refresh = () => {
    showHistory()
    showReplicas()
  }

  let timer
  const alarm = h('p', {class: 'note bad', hidden: true})
  // The replicas, if there are several, because the tables show only the one that serves the page.
  const replicas = h('p', {class: 'row replicas', hidden: true})
  async function showReplicas() {
    if (document.hidden || !(state?.server.replicas > 1)) return
    const list = await get('replicas').catch(() => null)
    if (!list) return
    replicas.hidden = false
    setNodes(replicas, ...list.map(({replica, up, totals}) => h('a', {href: 'server', class: `badge ${up ? 'quiet' : 'bad'}`},
      text('replica'), ' ', isolated(number(replica)), ' – ', ...up ? [text('sessions'), ': ', isolated(number(totals.sessions))] : [text('problem-replica')])))
  }

  const node = h('div', {}, alarm, replicas, h('div', {class: 'charts'}, ...Object.values(charts).map(chart => chart.node)), transfers.node, sessions.node, uploads.node)
  return {
    node,
    show() {
      clearInterval(timer)
      timer = setInterval(refresh, historyEvery)
      refresh()
    },
    hide: () => clearInterval(timer),
    state(next) {
      if (!state) setTimeout(showReplicas)
      state = next
      transfers.update(state.transfers.sort(older), state.totals.transfers)
      showSessions()
      const names = state.tenants.map(({name}) => name).sort()
      if (names.join('\n') !== Array.from(tenant.options, ({value}) => value).join('\n')) {
        const chosen = tenant.value
        tenant.replaceChildren(...names.map(name => new Option(name, name, false, name === chosen)))
      }
    },
    // problems shows the worst problem above everything else.
    problems(found) {
      const [worst] = found
      alarm.hidden = worst?.severity !== 'error'
      if (!alarm.hidden) setNodes(alarm, h('a', {href: 'problems', text: 'problems'}), ': ', problemWords(worst), ' – ', visible(worst.text, 'en'))
    },
    translate() {
      for (const chart of Object.values(charts)) chart.translate()
      uploads.update(uploads.items)
      showReplicas()
    },
  }
}

