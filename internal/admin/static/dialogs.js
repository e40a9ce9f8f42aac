// Questions, results and the login.

import {call, errorText, get} from './api.js'
import {h} from './dom.js'
import {duration, filled, isolated, isolating, language, number, text, visible} from './format.js'

const result = document.getElementById('result')

// announce shows the result of an action.
export function announce(...words) {
  result.replaceChildren(...words)
  result.classList.remove('bad')
}

// complain shows why an action has failed.
export function complain(error, texts) {
  announce(...errorText(error, texts))
  result.classList.add('bad')
}

// dialog opens a dialog with this heading, content and buttons, and resolves to the value of the button that
// closed it. The first button cancels, like Escape.
export function dialog({title, content = [], buttons, wide, submit, texts}) {
  const heading = h('h2', {id: 'dialog-title', tabindex: -1}, ...title)
  const problem = h('p', {class: 'problem', role: 'alert'})
  const form = h('form', {method: 'dialog'}, heading, ...content, problem, h('div', {class: 'buttons'}, ...buttons))
  const node = h('dialog', {class: wide ? 'wide' : null, 'aria-labelledby': 'dialog-title'}, form)
  const opener = document.activeElement
  document.body.append(node)
  form.addEventListener('submit', async event => {
    if (!event.submitter?.value || !submit) return
    event.preventDefault()
    problem.replaceChildren()
    try {
      if (await submit(event.submitter.value) === false) return
      node.close(event.submitter.value)
    } catch (error) {
      problem.replaceChildren(...errorText(error, texts))
    }
  })
  node.showModal()
  return new Promise(resolve => node.addEventListener('close', () => {
    node.remove()
    if (document.activeElement === document.body) opener?.isConnected ? opener.focus() : document.querySelector('#screen h1')?.focus()
    resolve(node.returnValue)
  }))
}

// closing returns a button that closes a dialog. Without a value it cancels.
export const closing = (name, value = '', properties = {}) =>
  h('button', {text: name, value, formnovalidate: !value, ...properties})

// ask asks whether to do something to a subject, and then does it. gone is the name of the text that says that
// something else has ended it first. texts has texts for errors, by status.
export async function ask({question, action, subject, content = [], act, done, gone, texts, dangerous = true}) {
  const words = subject.flatMap(part => [visible(part), ' '])
  const answer = await dialog({
    title: [text(question)], content: [h('p', {class: 'subject'}, ...words), ...content],
    buttons: [closing('cancel', '', {autofocus: true}), closing(action, 'confirm', {class: dangerous ? 'dangerous' : 'primary'})],
  })
  if (answer !== 'confirm') return
  try {
    await act()
    announce(text(done))
  } catch (error) {
    if (error.status === 404 && gone) announce(text(gone))
    else complain(error, texts)
  }
}

// findProblems shows what the log says about a client. It starts two hours ago, or earlier if the client has been
// connected for longer.
export async function findProblems(address, began, subject) {
  const hours = Math.ceil(Math.max(2, (new Date() - new Date(began)) / 3_600_000))
  let shown
  try {
    const found = await get('findings', {address, since: `${hours}h`, lang: language()})
    shown = found.length > 0 ? found.map(finding) : [h('p', {text: 'nothing-found'})]
  } catch (error) {
    shown = [h('p', {}, ...errorText(error))]
  }
  await dialog({title: subject.flatMap(part => [visible(part), ' ']), wide: true, content: [h('div', {id: 'found'}, ...shown)], buttons: [closing('close')]})
}

// finding shows the cause of a problem, what to change, the related keys of the configuration, and the log
// entries.
export function finding({level, user, times, cause, args = [], change, keys = [], evidence = []}) {
  const heading = h('h3', {class: level === 'wrong' ? 'problem' : null}, ...(user ? [visible(user), ': '] : []), ...isolating(cause, args))
  if (times > 1) heading.append(' ', isolated(`(${number(times)} ×)`))
  const article = h('article', {}, heading, h('p', {}, change))
  if (keys.length > 0) article.append(h('p', {}, visible(`babelftp.yaml: ${keys.join(', ')}`, 'en')))
  if (evidence.length > 0) article.append(h('ul', {}, ...evidence.map(line => h('li', {}, visible(line, 'en')))))
  return article
}

// The login.

const login = document.getElementById('login')
const [name, password] = [document.getElementById('name'), document.getElementById('password')]
const failed = document.getElementById('login-failed')
let waiting // the promise of the login, and the function that resolves it

// logIn shows the login until it succeeds. Everything behind it stays, so that nothing typed is lost.
export function logIn() {
  if (waiting) return waiting.promise
  waiting = Promise.withResolvers()
  failed.replaceChildren()
  login.querySelector('#login-again').hidden = document.body.classList.contains('empty')
  login.showModal()
  name.focus()
  offer()
  return waiting.promise
}

// Errors of a login at an identity provider, by the parameter login_error of the page.
const loginErrors = {
  no_role: 'login-no-role', denied: 'login-canceled', expired: 'login-expired', unavailable: 'login-unavailable', failed: 'login-invalid',
}
const returnKey = 'babelftp-return'

// returned puts back the address of the page that the reader has left for an identity provider.
export function returned() {
  const address = sessionStorage.getItem(returnKey)
  const problem = new URLSearchParams(location.search).get('login_error')
  sessionStorage.removeItem(returnKey)
  if (address || problem) history.replaceState(null, '', address ?? 'now')
  return problem
}

// offer shows the ways to log in, and why the last login has failed.
async function offer() {
  const {password = true, oidc} = await fetch('login/options').then(response => response.ok ? response.json() : {}).catch(() => ({}))
  const provider = document.getElementById('provider')
  provider.hidden = !oidc
  document.getElementById('login-fields').hidden = !password && oidc
  if (oidc) provider.replaceChildren(...filled('log-in-with', {Name: oidc.name}))
  const known = loginErrors[document.body.dataset.loginError]
  if (known) failed.replaceChildren(...filled(known, {Name: oidc?.name ?? '', Key: 'admin.oidc.roles'}))
  delete document.body.dataset.loginError
}

// The login of an identity provider opens another tab if the reader may have typed something on the page.
document.getElementById('provider').addEventListener('click', event => {
  if (!document.body.classList.contains('empty')) event.currentTarget.target = '_blank'
  else sessionStorage.setItem(returnKey, location.pathname.split('/').at(-1) + location.search)
})

// loggedIn closes the login and continues what was waiting for it.
function loggedIn() {
  const {resolve} = waiting
  waiting = undefined
  login.close()
  resolve()
}

login.addEventListener('cancel', event => event.preventDefault())

// A reader who has logged in on another tab comes back.
window.addEventListener('focus', async () => {
  if (!waiting) return
  const response = await fetch('api/v1/me').catch(() => null)
  if (response?.ok && waiting) loggedIn()
})

login.querySelector('form').addEventListener('submit', async event => {
  event.preventDefault()
  failed.textContent = ''
  const response = await fetch('login', {method: 'POST', body: new URLSearchParams({user: name.value, password: password.value})}).catch(error => error)
  password.value = ''
  if (response.ok) return loggedIn()
  const reason = visible(response.statusText || response.message || `${response.status}`, 'en')
  failed.replaceChildren(...response.status === 401 ? [text('login-failed')] : filled(response.status ? 'failed' : 'unanswered', {Error: reason}))
  password.focus()
})

// Bans.

// How long a ban may last.
const times = [[15, 'minute'], [1, 'hour'], [1, 'day'], [7, 'day']]
const go = {minute: 'm', hour: 'h'}

// banTime returns a menu of durations, with the values that the API expects.
export function banTime(properties = {}) {
  return h('select', properties, ...times.map(([n, unit]) =>
    h('option', {value: unit === 'day' ? `${n * 24}h` : `${n}${go[unit]}`}, duration(n, unit))))
}

export const ban = (name, time) => call('PUT', `bans?${new URLSearchParams({name, time})}`)
export const unban = name => call('DELETE', `bans?${new URLSearchParams({name})}`)
