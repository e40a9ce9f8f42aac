// Calls the API, and follows the state of the server.

import {filled, shared, text, visible} from './format.js'

const api = 'api/v1/'

// Milliseconds before the next attempt to connect, and until a connection without events counts as lost. The
// server sends an event at least every 15 s.
const retryAfter = 2_000
const silence = 30_000

// A Refusal is an error from the API, or from a proxy in front of the server. Only an error from the API has a
// status, because the status of a proxy says nothing about the storage or the audit log.
export class Refusal extends Error {
  constructor(message, status, fields = []) {
    super(message)
    Object.assign(this, {status, fields})
  }
}

let login // asks the reader to log in, and resolves once that is done

// onLogin sets the function that asks the reader to log in.
export const onLogin = ask => { login = ask }

// call sends a request and returns the response as {data, etag}. If the login has expired, it waits until the
// reader has logged in again, and repeats the request, which the server has not executed.
export async function call(method, path, {body, etag, signal} = {}) {
  const headers = {}
  if (etag) headers['If-Match'] = etag
  if (body) headers['Content-Type'] = method === 'PATCH' ? 'application/merge-patch+json' : 'application/json'
  for (;;) {
    const response = await fetch(api + path, {method, headers, signal, body: body && JSON.stringify(body)})
    if (response.status === 401) {
      await login()
      continue
    }
    const type = response.headers.get('Content-Type') ?? ''
    const data = type.startsWith('application/json') ? await response.json() : null
    if (data?.error) throw new Refusal(data.error, response.status, data.fields)
    if (!response.ok) throw new Refusal(`${response.status} ${response.statusText}`)
    return {data: data ?? {}, etag: response.headers.get('ETag')}
  }
}

// get returns the data of a path. Parameters that are empty are left out.
export async function get(path, parameters = {}, signal) {
  const query = new URLSearchParams(Object.entries(parameters).filter(([, value]) => value))
  return (await call('GET', query.size ? `${path}?${query}` : path, {signal})).data
}

// exportAddress returns the address of a download.
export const exportAddress = (path, parameters) =>
  `${api}${path}?${new URLSearchParams(Object.entries(parameters).filter(([, value]) => value))}`

// Texts for errors of the API, by status. The reason from the server, in English, follows if it adds something.
const common = {403: () => [text('not-allowed')]}
const storage = {
  409: reason => [text('cannot-delete'), ' ', reason], // the upload is in use or its outcome is not known yet
  502: reason => [shared('doctor-storage-refuses'), ' ', reason],
  503: () => [shared('audit-unavailable')], // audit.required refuses changes
}

// errorText describes an error. If there is no text for its status, it uses the English of the server or the
// browser. Without a status, it is unknown whether the server has done what was requested. own has texts by status
// for errors that mean something else than errors of sessions, bans and uploads.
export function errorText({status, message}, own = storage) {
  const reason = visible(message, 'en')
  return {...common, ...own}[status]?.(reason) ?? filled(status ? 'failed' : 'unanswered', {Error: reason})
}

// The state of the server.

let stream, heard, timer, show

// follow calls on.state with each new state of the server, and on.connection with live or stale and the time at
// which the server was last heard.
export function follow(on) {
  show = on
  connect()
}

// connect fetches the state once, because EventSource does not report why it fails, and then subscribes to
// changes.
async function connect() {
  clearTimeout(timer)
  stream?.close()
  try {
    await get('server')
  } catch {
    return lost()
  }
  stream = new EventSource(api + 'events')
  stream.addEventListener('state', event => {
    live()
    show.state(JSON.parse(event.data))
  })
  stream.addEventListener('alive', live)
  stream.onerror = lost
}

function live() {
  heard = new Date()
  show.connection('live', heard)
  clearTimeout(timer)
  timer = setTimeout(lost, silence)
}

// lost marks the state as stale and schedules another attempt.
function lost() {
  stream?.close()
  clearTimeout(timer)
  show.connection(heard ? 'stale' : 'connecting', heard)
  timer = setTimeout(connect, retryAfter)
}
