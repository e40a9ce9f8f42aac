// The page of the admin listener. It shows the state that the API reports and follows its changes.

import {bytes, compare, filled, isolated, isolating, languageName, number, of, percent, shared, speed, text, time, visible} from './format.js'
import {Table, filter, filtering, set, setForeign, setNodes, setReason} from './table.js'

const api = 'api/v1/'
const element = id => document.getElementById(id)

// Milliseconds before the next attempt to connect, and until a connection without events counts as lost. The
// server sends an event at least every 15 s.
const retryAfter = 2_000
const silence = 30_000

// Cells.

// setTime shows a time from the API (RFC 3339) in a cell.
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

// setPart shows a part of a whole as text and as a bar. Screen readers skip the bar, because it only repeats
// the text.
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

// storage shows whether the buckets of a tenant and its folders can be used, and if not, why.
function storage(cell, tenant) {
  const down = [tenant, ...tenant.folders ?? []].filter(bucket => bucket.bucket_up === false)
  const reasons = down.map(({folder, reason}) => [folder, reason].filter(part => part).join(': '))
  cell.classList.toggle('problem', down.length > 0)
  if (down.length > 0) return setReason(cell, `${text('unreachable')} – `, reasons.join(' – '))
  set(cell, tenant.bucket_up === null ? '–' : text('reachable'))
}

// Words of the server: events, outcomes, limits and reasons of bans. A word without a text, for example from
// a newer server, is shown as it is.

const events = {
  login: text('event-login'), logout: text('event-logout'), refused: text('event-refused'),
  upload: text('upload'), download: text('download'), delete: text('event-delete'), rename: text('event-rename'),
  mkdir: text('event-mkdir'), rmdir: text('event-rmdir'), copy: text('event-copy'),
  set_time: text('event-set-time'), presign: text('event-presign'), password: text('event-password'),
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

// word shows a word of the server in the language of the page.
const word = (texts, value) => [Object.hasOwn(texts, value) ? texts[value] : visible(value, 'en')]

// limitWords returns a description of a limit and its key in the configuration.
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
        if (e.outcome === 'ok' || !/[.:]/.test(e.client)) return // succeeded, or not a client address
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

// A fixed order, so that no row moves away under the pointer.
const older = (a, b) => a.since < b.since ? -1 : a.since > b.since ? 1 : 0
const byName = (a, b) => compare(a.name, b.name)
const orders = {transfers: older, sessions: older, tenants: byName, bans: byName}

let state // the latest State
const fetching = new Map() // lists being fetched; the value is true if another fetch must follow

// show displays a State, which has the first items and the length of each list.
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

// showAll fetches and shows a whole list, because the filter must see the rows that the state leaves out.
async function showAll(name) {
  if (fetching.has(name)) return fetching.set(name, true)
  try {
    do {
      fetching.set(name, false)
      const all = await request(name)
      if (all) tables[name].update(all.sort(orders[name]))
    } while (fetching.get(name))
  } catch (error) {
    announce(...errorText(error))
  }
  fetching.delete(name)
}

// showTenants fills the menu of tenants.
async function showTenants() {
  const menu = element('tenant')
  const tenants = await request('tenants').catch(() => null)
  if (tenants) menu.replaceChildren(...tenants.map(({name}) => new Option(name, name, false, name === menu.value)))
}

// The connection.

let stream, heard, timer

// request calls the API. It returns null if the server requires a login or cannot be reached. It throws an
// error if the server refuses the request. An error from the API has the HTTP status. An error from a proxy
// in front of the server has none, because its status says nothing about the storage or the audit log.
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

// connect fetches the state once, because EventSource does not report why it fails, and then subscribes to
// changes.
async function connect() {
  clearTimeout(timer)
  try {
    if (!await request('server')) return
  } catch {
    return connectionLost()
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
  stream.onerror = connectionLost
}

function live() {
  heard = new Date()
  document.body.className = 'live'
  set(element('connection'), text('live'))
  clearTimeout(timer)
  timer = setTimeout(connectionLost, silence)
}

// connectionLost marks the state as stale and schedules another attempt.
function connectionLost() {
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

// Administrators with a certificate cannot log out.
element('log-out').addEventListener('click', async () => {
  close()
  await fetch('logout', {method: 'POST'}).catch(() => null)
  connect()
})

// Actions of the reader.

element('words').addEventListener('input', event => {
  filter(event.target.value)
  for (const table of Object.values(tables)) table.render()
  show()
})

element('filter').addEventListener('submit', event => event.preventDefault())

// announce shows the result of an action.
function announce(...words) {
  element('result').replaceChildren(...words)
}

// Texts for errors of the API, by status. The reason from the server, in English, follows if it adds
// something.
const refusals = {
  409: reason => [text('cannot-delete'), ' ', reason], // the upload is in use or its outcome is not known yet
  502: reason => [shared('doctor-storage-refuses'), ' ', reason],
  503: () => [shared('audit-unavailable')], // audit.required refuses changes
}

// errorText describes an error. If there is no text for its status, it uses the English of the server or the
// browser. Without a status, it is unknown whether the server has done what was requested.
function errorText({status, message}) {
  const reason = visible(message, 'en')
  return refusals[status]?.(reason) ?? filled(status ? 'failed' : 'unanswered', {Error: reason})
}

// subjectNodes shows the subject of a row.
const subjectNodes = subject => subject.flatMap(part => [visible(part), ' '])

let pending // the question in the dialog

// ask opens a dialog and, once the reader confirms, deletes path.
function ask(question) {
  pending = question
  element('question').textContent = pending.question
  element('subject').replaceChildren(...subjectNodes(pending.subject))
  element('confirmed').textContent = pending.action
  element('confirm').showModal()
}

element('confirm').addEventListener('submit', async event => {
  event.preventDefault()
  element('confirm').close()
  if (event.submitter.value !== 'confirm') return
  const {path, done, gone, then} = pending
  try {
    if (await request(path, {method: 'DELETE'})) announce(done)
  } catch (error) {
    announce(...error.status === 404 ? [gone] : errorText(error)) // something else has ended it first
  }
  await then?.()
})

// The button that opened the dialog may have disappeared with its row.
element('confirm').addEventListener('close', () => {
  if (document.activeElement === document.body) pending.table.focus()
})

// findProblems shows what the log says about a client. It starts two hours ago, or earlier if the row is
// older.
async function findProblems(address, began, subject) {
  const hours = Math.ceil(Math.max(2, (new Date() - new Date(began)) / 3_600_000))
  let shown
  try {
    const found = await request(`findings?${new URLSearchParams({address, since: `${hours}h`, lang: document.documentElement.lang})}`)
    if (!found) return
    shown = found.length > 0 ? found.map(finding) : [text('nothing-found')]
  } catch (error) {
    shown = errorText(error)
  }
  element('client').replaceChildren(...subjectNodes(subject))
  element('found').replaceChildren(...shown)
  element('problems').showModal()
}

// finding shows the cause of a problem, what to change, the related keys of the configuration, and the log
// entries.
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
    if (answer.unanswered.length > 0) announce(...errorText({status: 502, message: answer.unanswered.map(({reason}) => reason).join(' – ')}))
  } catch (error) {
    announce(...errorText(error))
  }
}

element('choose').addEventListener('submit', event => {
  event.preventDefault()
  showUploads()
})

// showAudit shows the latest events, newest first. Identical events are numbered to get distinct keys.
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
    announce(...errorText(error))
  }
}

element('refresh').addEventListener('click', showAudit)

connect()
