// The page of the admin listener: it shows what the API tells, as it changes.

import {bytes, compare, filled, isolated, isolating, languageName, number, of, percent, shared, speed, text, time, visible} from './format.js'
import {Table, filter, filtering, set, setForeign, setNodes, setReason} from './table.js'

const api = 'api/v1/'
const element = id => document.getElementById(id)

// How long to wait before the next attempt to connect, and until a connection without events counts as lost. The server sends one every 15 s.
const retryAfter = 2_000
const silence = 30_000

// Cells.

// setTime shows a time of the API (RFC 3339) in a cell.
function setTime(cell, value) {
  if (!value) return set(cell, '–')
  const date = new Date(value)
  const shown = time(date)
  if (cell.shown === shown) return
  cell.shown = shown
  const node = document.createElement('time')
  node.dateTime = value
  node.textContent = shown
  cell.replaceChildren(node)
}

// setPart shows how much there is of a whole as nodes, and as a bar. The bar says nothing new, so screen readers pass it over.
function setPart(cell, part, whole, nodes) {
  if (!cell.firstChild) cell.append(document.createElement('span'), document.createElement('progress'))
  const [label, bar] = cell.children
  setNodes(label, nodes)
  bar.hidden = !whole
  bar.max = whole || 1
  bar.value = part
  bar.setAttribute('aria-hidden', 'true')
}

const column = name => (cell, item) => setForeign(cell, item[name] || '–')
const timeColumn = name => (cell, item) => setTime(cell, item[name])
const who = {user: column('user'), tenant: column('tenant'), address: column('remote')}
const directions = {upload: text('upload'), download: text('download'), listing: text('listing')}

function progress(cell, {bytes: moved, size}) {
  const part = size > 0 ? moved / size : 0
  const words = [isolated(...of(bytes(moved), bytes(size))), ' (', isolated(percent(Math.min(part, 1))), ')']
  setPart(cell, moved, size, size > 0 ? words : [isolated(bytes(moved))])
}

function quota(cell, {quota}) {
  if (!quota) return setPart(cell, 0, 0, [text('no-quota')])
  const used = quota.bytes ?? 0
  setPart(cell, used, quota.max_bytes, of(quota.bytes === null ? '–' : bytes(used), bytes(quota.max_bytes)))
}

// storage shows whether the bucket of a tenant and those of its folders can be used, and why not.
function storage(cell, tenant) {
  const down = [tenant, ...tenant.folders ?? []].filter(bucket => bucket.bucket_up === false)
  const reasons = down.map(({folder, reason}) => [folder, reason].filter(part => part).join(': '))
  cell.classList.toggle('problem', down.length > 0)
  if (down.length > 0) return setReason(cell, `${text('unreachable')} – `, reasons.join(' – '))
  set(cell, tenant.bucket_up === null ? '–' : text('reachable'))
}

// Words of the server: its events, outcomes, limits and reasons of bans. One that has no text, such as one of a newer server, stands for itself.

const events = {
  login: text('event-login'), logout: text('event-logout'), refused: text('event-refused'),
  upload: text('upload'), download: text('download'), delete: text('event-delete'), rename: text('event-rename'),
  mkdir: text('event-mkdir'), rmdir: text('event-rmdir'), copy: text('event-copy'),
  set_time: text('event-set-time'), presign: text('event-presign'),
  admin_login: text('event-admin-login'), ban: text('event-ban'), unban: text('unban'),
  disconnect: text('disconnect'), abort_upload: `${text('uploads')} – ${text('delete')}`,
  debug: text('event-debug'), debug_off: text('event-debug-off'), reload: text('event-reload'),
}
const outcomes = {ok: text('outcome-ok'), failed: text('outcome-failed'), refused: text('outcome-refused')}
const banReasons = {
  'an administrator': text('reason-administrator'), 'failed logins': text('reason-logins'),
  'unknown commands or refused connections': text('reason-offences'),
}
const scopes = {server: text('server'), address: text('address'), tenant: text('tenant'), user: text('user')}
const limits = {
  sessions: text('sessions'), transfers: text('transfers'), operations: text('limit-operations'),
  'passive.ports': text('limit-passive-ports'),
  login_rate: text('limit-login-rate'), command_rate: text('limit-command-rate'),
  sessions_before_login: text('limit-before-login'), login_timeout: text('limit-login-timeout'),
  bans: text('bans'), deny: text('limit-deny'),
  'user.disabled': text('limit-user-disabled'), 'user.expired': text('limit-user-expired'),
  descriptors: text('limit-descriptors'),
}

// word shows a word of the server by its text.
const word = (texts, value) => [Object.hasOwn(texts, value) ? texts[value] : visible(value, 'en')]

// limitWords are what a limit is on, and its key in the configuration.
function limitWords(key) {
  const [scope, of] = key.split('.')
  const named = [' (', isolated(key), ')']
  if (Object.hasOwn(limits, key)) return [limits[key], ...named]
  if (Object.hasOwn(scopes, scope) && Object.hasOwn(limits, of)) return [`${scopes[scope]} – ${limits[of]}`, ...named]
  return word({}, key)
}

// Tables.

const tables = {
  transfers: new Table('transfers', {
    key: t => `${t.session} ${t.since}`,
    words: t => [t.user, t.tenant, t.remote, t.path],
    subject: ['user', 'path'],
    columns: {
      ...who,
      direction: (cell, t) => set(cell, directions[t.direction] ?? t.direction),
      path: column('path'),
      progress,
      speed: (cell, t) => setNodes(cell, [speed(t.bytes_per_second)]),
      since: timeColumn('since'),
    },
  }),
  sessions: new Table('sessions', {
    key: s => s.id,
    words: s => [s.user, s.tenant, s.remote],
    subject: ['user', 'address'],
    columns: {
      ...who,
      language: (cell, s) => set(cell, languageName(s.language)),
      encryption: (cell, s) => set(cell, s.tls ? 'TLS' : text('unencrypted')),
      command: column('command'),
      since: timeColumn('since'),
      'last-activity': timeColumn('last_active'),
      actions: cell => tables.sessions.buttons(cell, {
        [text('disconnect')]: (s, subject) => ask({
          question: text('disconnect-question'), action: text('disconnect'), subject,
          path: `sessions/${encodeURIComponent(s.id)}`, done: text('disconnected'), gone: text('session-gone'), table: tables.sessions,
        }),
        [text('find-problems')]: (s, subject) => findProblems(s.remote, s.since, subject),
      }),
    },
  }),
  tenants: new Table('tenants', {
    key: t => t.name,
    words: t => [t.name, t.bucket],
    subject: ['tenant'],
    columns: {
      tenant: column('name'),
      bucket: (cell, t) => setForeign(cell, t.prefix ? `${t.bucket}/${t.prefix}` : t.bucket),
      storage,
      sessions: (cell, t) => set(cell, number(t.sessions)),
      quota,
    },
  }),
  bans: new Table('bans', {
    key: b => b.name,
    words: b => [b.name],
    subject: ['banned'],
    columns: {
      banned: column('name'),
      until: timeColumn('until'),
      reason: (cell, b) => setNodes(cell, word(banReasons, b.reason || '–')),
      actions: cell => tables.bans.buttons(cell, {
        [text('unban')]: (b, subject) => ask({
          question: text('unban-question'), action: text('unban'), subject,
          path: `bans?name=${encodeURIComponent(b.name)}`, done: text('unbanned'), gone: text('ban-gone'), table: tables.bans,
        }),
      }),
    },
  }),
  uploads: new Table('uploads', {
    key: u => u.id,
    words: u => [u.tenant, u.user, u.path],
    subject: ['path', 'user'],
    columns: {
      path: column('path'),
      user: column('user'),
      size: (cell, u) => setNodes(cell, [u.bytes === null ? '–' : isolated(bytes(u.bytes))]),
      'last-data': timeColumn('last_part'),
      actions: cell => tables.uploads.buttons(cell, {
        [text('delete')]: (u, subject) => ask({
          question: text('delete-question'), action: text('delete'), subject,
          path: `uploads/${encodeURIComponent(u.tenant)}/${encodeURIComponent(u.id)}`, done: text('deleted'), gone: text('upload-gone'),
          table: tables.uploads, then: showUploads,
        }),
      }),
    },
  }),
  audit: new Table('audit', {
    key: e => e.key,
    words: e => [e.administrator, e.tenant, e.user, e.client, e.path],
    subject: ['event', 'time', 'address'],
    columns: {
      time: timeColumn('time'),
      event: (cell, e) => setNodes(cell, word(events, e.event)),
      outcome: (cell, e) => setNodes(cell, word(outcomes, e.outcome)),
      user: (cell, e) => setForeign(cell, e.administrator || e.user || '–'),
      tenant: column('tenant'),
      address: column('client'),
      path: column('path'),
      actions: (cell, e) => {
        if (e.outcome === 'ok' || !/[.:]/.test(e.client)) return // it may be the server
        tables.audit.buttons(cell, {[text('find-problems')]: (_, subject) => findProblems(e.client, e.time, subject)})
      },
    },
  }),
  certificates: new Table('certificates', {
    key: c => `${c.tenant} ${c.names} ${c.not_after}`,
    words: c => [c.tenant, ...c.names],
    subject: ['names'],
    columns: {
      names: (cell, c) => setForeign(cell, c.names.join(' ')),
      tenant: column('tenant'),
      'valid-until': (cell, c) => {
        const expired = new Date(c.not_after) < new Date()
        cell.classList.toggle('problem', expired)
        if (expired) setNodes(cell, [`${text('expired')} (`, isolated(time(new Date(c.not_after))), ')'])
        else setTime(cell, c.not_after)
      },
    },
  }),
  refusals: new Table('refusals', {
    key: r => r.limit,
    words: r => [r.limit],
    subject: ['limit'],
    columns: {limit: (cell, r) => setNodes(cell, limitWords(r.limit)), number: (cell, r) => set(cell, number(r.count))},
  }),
}

// An order that does not change, so that no row moves away under the pointer.
const older = (a, b) => a.since < b.since ? -1 : a.since > b.since ? 1 : 0
const byName = (a, b) => compare(a.name, b.name)
const orders = {transfers: older, sessions: older, tenants: byName, bans: byName}

let state // the last one
const fetching = new Map() // lists that are asked for, with whether to ask again

// show shows a state of the server, which has the first of each list and how many there are.
function show() {
  for (const [name, order] of Object.entries(orders)) {
    if (filtering() && state.totals[name] > state[name].length) {
      showAll(name)
    } else {
      tables[name].update(state[name].sort(order), state.totals[name])
    }
  }
  const {server} = state
  tables.certificates.update(server.certificates)
  tables.refusals.update(Object.entries(server.refusals).map(([limit, count]) => ({limit, count})))
  set(element('ready'), text(server.draining ? 'shutting-down' : server.ready ? 'ready' : 'not-ready'))
  set(element('version'), server.version)
  set(element('replica'), number(server.replica))
  set(element('replicas'), number(server.replicas))
  setTime(element('started'), server.started)
  set(element('configuration'), server.config_hash.slice(0, 12))
  setTime(element('loaded'), server.reloaded)
}

// showAll asks for a whole list, because the filter looks at rows that the state leaves out.
async function showAll(name) {
  if (fetching.has(name)) return fetching.set(name, true)
  try {
    do {
      fetching.set(name, false)
      const all = await request(name)
      if (all) tables[name].update(all.sort(orders[name]))
    } while (fetching.get(name))
  } catch (error) {
    say(...refusal(error))
  }
  fetching.delete(name)
}

// showTenants lets the reader choose one of all tenants.
async function showTenants() {
  const menu = element('tenant')
  const tenants = await request('tenants').catch(() => null)
  if (tenants) menu.replaceChildren(...tenants.map(({name}) => new Option(name, name, false, name === menu.value)))
}

// The connection.

let stream, heard, timer

// request asks the API. It returns null when the server wants a login or cannot be reached, and throws what the server refuses. An error of the API
// has its status. One of a proxy before the server has none, because it says nothing about the storage or the audit log.
async function request(path, options) {
  const response = await fetch(api + path, options)
  if (response.status === 401) {
    showLogin()
    return null
  }
  const type = response.headers.get('Content-Type') ?? ''
  const answer = type.startsWith('application/json') ? await response.json() : null
  if (answer?.error) throw Object.assign(new Error(answer.error), {status: response.status})
  if (!response.ok) throw new Error(`${response.status} ${response.statusText}`)
  return answer ?? {}
}

// connect asks for the state once, because EventSource does not tell why it fails, and for its changes then.
async function connect() {
  clearTimeout(timer)
  try {
    if (!await request('server')) return
  } catch {
    return lost()
  }
  element('login').hidden = true
  stream = new EventSource(api + 'events')
  stream.addEventListener('state', event => {
    const before = state
    state = JSON.parse(event.data)
    show()
    if (before?.totals.tenants !== state.totals.tenants) showTenants()
    if (element('state').hidden) showAudit()
    element('state').hidden = false
    element('log-out').hidden = false
    live()
  })
  stream.addEventListener('alive', live)
  stream.onerror = lost
}

function live() {
  heard = new Date()
  document.body.className = 'live'
  set(element('connection'), text('live'))
  clearTimeout(timer)
  timer = setTimeout(lost, silence)
}

// lost says that the state may be old, and tries again.
function lost() {
  close()
  if (heard) {
    document.body.className = 'stale'
    setNodes(element('connection'), filled('stale', {Time: time(heard)}))
  }
  timer = setTimeout(connect, retryAfter)
}

function close() {
  stream?.close()
  clearTimeout(timer)
}

// The login.

function showLogin() {
  close()
  element('state').hidden = true
  element('log-out').hidden = true
  document.body.className = ''
  set(element('connection'), '')
  element('login').hidden = false
  element('name').focus()
}

element('login').addEventListener('submit', async event => {
  event.preventDefault()
  const failed = element('login-failed')
  failed.textContent = ''
  const response = await fetch('login', {method: 'POST', body: new URLSearchParams({user: element('name').value, password: element('password').value})}).catch(error => error)
  element('password').value = ''
  if (response.ok) return connect()
  const reason = visible(response.statusText || response.message || `${response.status}`, 'en')
  failed.replaceChildren(...response.status === 401 ? [text('login-failed')] : filled(response.status ? 'failed' : 'unanswered', {Error: reason}))
  element('password').focus()
})

// Who has a certificate stays logged in.
element('log-out').addEventListener('click', async () => {
  close()
  await fetch('logout', {method: 'POST'}).catch(() => null)
  connect()
})

// What the reader does.

element('words').addEventListener('input', event => {
  filter(event.target.value)
  for (const table of Object.values(tables)) table.render()
  show()
})

element('filter').addEventListener('submit', event => event.preventDefault())

// say tells what has happened.
function say(...words) {
  element('result').replaceChildren(...words)
}

// What the page says of errors of the API, by their status. The reason follows in the English of the server where it adds something.
const refusals = {
  409: reason => [text('cannot-delete'), ' ', reason], // an upload that is in use, or not settled
  502: reason => [shared('doctor-storage-refuses'), ' ', reason],
  503: () => [shared('audit-unavailable')], // a change while audit.required refuses it
}

// refusal tells an error. One without a text of its own is told in the English of the server or the browser. Without a status nobody knows whether the
// server has done what was asked.
function refusal({status, message}) {
  const reason = visible(message, 'en')
  return refusals[status]?.(reason) ?? filled(status ? 'failed' : 'unanswered', {Error: reason})
}

// named shows the subject of a row.
const named = subject => subject.flatMap(part => [visible(part), ' '])

let asked // the question of the dialog

// ask wants a confirmation, and then deletes what path names.
function ask(question) {
  asked = question
  element('question').textContent = asked.question
  element('subject').replaceChildren(...named(asked.subject))
  element('confirmed').textContent = asked.action
  element('confirm').showModal()
}

element('confirm').addEventListener('submit', async event => {
  event.preventDefault()
  element('confirm').close()
  if (event.submitter.value !== 'confirm') return
  const {path, done, gone, then} = asked
  try {
    if (await request(path, {method: 'DELETE'})) say(done)
  } catch (error) {
    say(...error.status === 404 ? [gone] : refusal(error)) // nobody knows what has ended it meanwhile
  }
  await then?.()
})

// The button that opened the dialog may have gone with its row.
element('confirm').addEventListener('close', () => {
  if (document.activeElement === document.body) asked.table.focus()
})

// findProblems shows what the log tells of a client, beginning two hours ago or with what the row shows.
async function findProblems(address, began, subject) {
  const hours = Math.ceil(Math.max(2, (new Date() - new Date(began)) / 3_600_000))
  let shown
  try {
    const found = await request(`findings?${new URLSearchParams({address, since: `${hours}h`, lang: document.documentElement.lang})}`)
    if (!found) return
    shown = found.length > 0 ? found.map(finding) : [text('nothing-found')]
  } catch (error) {
    shown = refusal(error)
  }
  element('client').replaceChildren(...named(subject))
  element('found').replaceChildren(...shown)
  element('problems').showModal()
}

// finding shows the cause of a problem, what to change, the keys in the configuration to look at, and what was logged.
function finding({level, user, times, cause, args = [], change, keys = [], evidence}) {
  const make = (tag, ...nodes) => {
    const node = document.createElement(tag)
    node.append(...nodes)
    return node
  }
  const heading = make('h3', ...(user ? [visible(user), ': '] : []), ...isolating(cause, args))
  heading.classList.toggle('problem', level === 'wrong')
  if (times > 1) heading.append(' ', isolated(`(${number(times)} ×)`))
  const article = make('article', heading, make('p', change))
  if (keys.length > 0) article.append(make('p', visible(`babelftp.yaml: ${keys.join(', ')}`, 'en')))
  article.append(make('ul', ...evidence.map(line => make('li', visible(line, 'en')))))
  return article
}

async function showUploads() {
  try {
    const answer = await request(`uploads?tenant=${encodeURIComponent(element('tenant').value)}`)
    if (!answer) return
    tables.uploads.update(answer.uploads.filter(u => ['interrupted', 'stalled'].includes(u.state)))
    if (answer.unanswered.length > 0) say(...refusal({status: 502, message: answer.unanswered.map(({reason}) => reason).join(' – ')}))
  } catch (error) {
    say(...refusal(error))
  }
}

element('choose').addEventListener('submit', event => {
  event.preventDefault()
  showUploads()
})

// showAudit shows the last events, the latest first. Equal events are told apart by their number.
async function showAudit() {
  try {
    const list = await request('audit')
    if (!list) return
    const seen = new Map()
    for (const e of list) {
      const same = JSON.stringify(e)
      seen.set(same, (seen.get(same) ?? 0) + 1)
      e.key = `${same} ${seen.get(same)}`
    }
    tables.audit.update(list.reverse())
  } catch (error) {
    say(...refusal(error))
  }
}

element('refresh').addEventListener('click', showAudit)

connect()
