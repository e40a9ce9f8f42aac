// The page of the admin listener: navigation, language, login and the connection to the server. Each screen has an
// address of its own, and stays in memory with everything that the reader has typed.

import * as activity from './activity.js'
import {follow, get, onLogin} from './api.js'
import {announce, logIn, returned} from './dialogs.js'
import {set, setNodes, translate} from './dom.js'
import {filled, language, number, text, time, use} from './format.js'
import * as now from './now.js'
import * as problems from './problems.js'
import {assume} from './role.js'
import * as server from './server.js'
import * as users from './users.js'
import {word, roles} from './words.js'

const element = id => document.getElementById(id)
const problemsEvery = 30_000 // milliseconds

use(JSON.parse(element('texts').textContent))

const tools = {go, replace, count: countProblems, languages: () => Array.from(element('lang').options, ({value, label}) => ({tag: value, name: label}))}
const modules = {now, users, activity, problems, server}
const screens = {} // created when they are first shown
let current, state
let found = [] // the problems

// Navigation.

const address = (screen, parameters = {}) => {
  const query = new URLSearchParams(Object.entries(parameters).filter(([, value]) => value))
  return query.size ? `${screen}?${query}` : screen
}

// go opens a screen.
function go(screen, parameters) {
  history.pushState(null, '', address(screen, parameters))
  open(true)
}

// replace changes the address without opening the screen again.
function replace(screen, parameters) {
  history.replaceState(null, '', address(screen, parameters))
}

// open shows the screen of the address. move moves the focus to its heading.
function open(move) {
  const name = location.pathname.split('/').at(-1)
  const screen = Object.hasOwn(modules, name) ? name : 'now'
  const changed = screen !== current
  if (changed) screens[current]?.hide?.()
  current = screen
  const shown = screens[screen] ??= create(screen)
  for (const child of element('screen').children) child.hidden = child !== shown.node
  element('title').dataset.text = screen
  translate(element('title'))
  document.title = `${text(screen)} – babelftp`
  for (const link of document.querySelectorAll('nav a')) {
    if (link.getAttribute('href') === screen) link.setAttribute('aria-current', 'page')
    else link.removeAttribute('aria-current')
  }
  announce()
  shown.show(Object.fromEntries(new URLSearchParams(location.search)))
  if (move && changed) {
    element('title').focus()
    scrollTo(0, 0)
  }
}

function create(name) {
  const screen = modules[name].create(tools)
  element('screen').append(screen.node)
  screen.role?.()
  screen.problems?.(found)
  if (state) screen.state?.(structuredClone(state))
  return screen
}

addEventListener('popstate', () => open(true))
document.addEventListener('click', event => {
  const link = event.target.closest('a[href]')
  if (!link || link.target || link.hasAttribute('download') || link.classList.contains('skip')) return
  if (event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return
  const [path, query] = link.getAttribute('href').split('?')
  if (!Object.hasOwn(modules, path)) return
  event.preventDefault()
  go(path, Object.fromEntries(new URLSearchParams(query)))
})

// The language.

element('lang').addEventListener('change', async event => {
  const tag = event.target.value
  const response = await fetch(`texts?${new URLSearchParams({lang: tag})}`).catch(() => null)
  if (!response?.ok) return
  use(await response.json())
  document.cookie = `babelftp-language=${tag}; Path=/; SameSite=Strict; Max-Age=31536000`
  document.documentElement.lang = tag
  document.documentElement.dir = event.target.selectedOptions[0].dataset.dir
  for (const each of document.querySelectorAll('[data-text], [data-label], [data-hint]')) translate(each)
  document.title = `${text(current)} – babelftp`
  announce()
  showMe()
  showConnection()
  for (const screen of Object.values(screens)) {
    if (state) screen.state?.(structuredClone(state))
    screen.problems?.(found)
    screen.translate?.()
  }
})

// The connection.

let connection = ['connecting']

function showConnection([kind, heard] = connection) {
  connection = [kind, heard]
  document.body.dataset.connection = kind
  setNodes(element('connection'), ...kind === 'stale' ? filled('stale', {Time: time(heard)}) : [text(kind)])
}

function show(next) {
  state = next
  if (!me) loadMe() // it could not be loaded before
  document.body.classList.remove('empty')
  // Each screen sorts its own copy.
  for (const screen of Object.values(screens)) screen.state?.(structuredClone(state))
}

// The administrator.

let me
function showMe() {
  if (!me) return
  set(element('me-name'), me.name)
  setNodes(element('me-role'), word(roles, me.role))
}

async function loadMe() {
  me = await get('me').catch(() => me)
  if (!me) return
  assume(me.role)
  showMe()
  element('log-out').hidden = !['password', 'link', 'oidc'].includes(me.login)
  for (const screen of Object.values(screens)) screen.role?.()
}

onLogin(async () => {
  element('log-out').hidden = true
  await logIn()
  await loadMe()
})

element('log-out').addEventListener('click', async () => {
  const response = await fetch('logout', {method: 'POST'}).catch(() => null)
  if (response?.status === 200) location.assign((await response.json()).logout_url)
  else location.reload() // forgets everything that the administrator has seen
})

// The number of problems, next to the name of their screen.
function countProblems(problems) {
  found = problems
  screens.now?.problems(found)
  const badge = element('problem-count')
  badge.hidden = found.length === 0
  badge.className = found.some(({severity}) => severity === 'error') ? 'badge bad' : 'badge warn'
  set(badge, number(found.length))
}

const loadProblems = async () => {
  if (!document.hidden && current !== 'problems') countProblems(await get('problems', {lang: language()}).catch(() => []))
}

for (const each of document.querySelectorAll('[data-text], [data-label], [data-hint]')) translate(each)
document.body.dataset.loginError = returned() ?? ''
showConnection()
await loadMe()
open(false)
follow({state: show, connection: (kind, heard) => showConnection([kind, heard])})
loadProblems()
setInterval(loadProblems, problemsEvery)
