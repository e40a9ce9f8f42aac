// The screen Problems: what is wrong, bans, and what limits have refused.

import {call, get} from './api.js'
import {announce, ask, ban, banTime, complain, unban} from './dialogs.js'
import {button, h, set, setForeign, setNodes, setTime} from './dom.js'
import {compare, filled, isolated, language, number, text, time, visible} from './format.js'
import {may} from './role.js'
import {Table} from './table.js'
import {banReasons, limitWords, problemWords, word} from './words.js'

const refreshEvery = 15_000 // milliseconds

// create returns the screen. count receives the number of problems.
export function create({count}) {
  const list = h('div', {class: 'problems', id: 'problem-list'})
  const none = h('p', {class: 'fine', hidden: true, text: 'nothing-found'})
  const problems = h('section', {'aria-labelledby': 'problem-heading'}, h('h2', {id: 'problem-heading', class: 'unseen', text: 'problems'}), list, none)

  function problem(found) {
    const {kind, severity, subject, tenant, since, text: words, file, line, key, action, replica} = found
    const details = [subject && visible(subject), tenant && visible(tenant), key && visible(key, 'en'), file && visible(file, 'en'),
      line && h('span', {}, ...filled('line', {Line: number(line)})), since && h('time', {datetime: since}, time(new Date(since))),
      replica !== undefined && h('span', {}, text('replica'), ' ', isolated(number(replica)))].filter(part => part)
    return h('article', {class: `problem-card ${severity}`},
      h('h3', {}, h('span', {class: `badge ${severity === 'error' ? 'bad' : 'warn'}`, text: severity === 'error' ? 'error' : 'warning'}), ' ', problemWords(found)),
      h('p', {}, visible(words, kind === 'finding' ? undefined : 'en')), ...action ? [h('p', {class: 'hint'}, visible(action, 'en'))] : [],
      h('p', {class: 'count'}, ...details.flatMap((part, i) => i ? [' · ', part] : [part])))
  }

  let found = []
  function render() {
    list.replaceChildren(...found.map(problem))
    none.hidden = found.length > 0
  }
  async function load() {
    try {
      found = await get('problems', {lang: language()})
    } catch (error) {
      return complain(error)
    }
    count(found)
    render()
  }

  const bans = new Table({
    id: 'bans', key: b => b.name, subject: ['banned'],
    columns: {
      banned: (cell, b) => setForeign(cell, b.name), until: (cell, b) => setTime(cell, b.until, time),
      reason: (cell, b) => setNodes(cell, word(banReasons, b.reason)),
    },
    actions: b => may('operator') ? [['unban', () => ask({
      question: 'unban-question', action: 'unban', subject: [b.name], done: 'unbanned', gone: 'ban-gone', dangerous: false, act: () => unban(b.name),
    })]] : [],
  })
  const name = h('input', {id: 'ban-name', label: 'banned', hint: 'banned', autocomplete: 'off', autocapitalize: 'none', spellcheck: 'false', required: true, dir: 'ltr'})
  let menu = banTime({'aria-label': text('ban-for')})
  const form = h('form', {class: 'row', id: 'ban-form'}, name, menu, h('button', {text: 'ban', class: 'dangerous'}))
  form.addEventListener('submit', async event => {
    event.preventDefault()
    try {
      await ban(name.value.trim(), menu.value)
      announce(text('banned-now'))
      name.value = ''
    } catch (error) {
      complain(error)
    }
  })
  bans.tools.append(form)

  const debugging = new Table({
    id: 'debug', title: 'event-debug', key: r => JSON.stringify(r), subject: ['user'],
    columns: {
      user: (cell, r) => setForeign(cell, r.user), tenant: (cell, r) => setForeign(cell, r.tenant),
      address: (cell, r) => setForeign(cell, r.network), until: (cell, r) => setTime(cell, r.until, time),
    },
  })
  const off = button('event-debug-off', async () => {
    try {
      await call('DELETE', 'debug')
      loadRules()
    } catch (error) {
      complain(error)
    }
  })
  debugging.tools.append(off)
  async function loadRules() {
    const rules = await get('debug').catch(() => [])
    debugging.update(rules ?? [])
    debugging.node.hidden = debugging.items.length === 0
  }

  const refusals = new Table({
    id: 'refusals', key: r => r.limit, subject: ['limit'],
    columns: {limit: (cell, r) => setNodes(cell, ...limitWords(r.limit)), number: (cell, r) => set(cell, number(r.count))},
  })

  let timer
  return {
    node: h('div', {}, problems, bans.node, debugging.node, refusals.node),
    show() {
      clearInterval(timer)
      timer = setInterval(load, refreshEvery)
      load()
      loadRules()
    },
    hide: () => clearInterval(timer),
    state(state) {
      bans.update(state.bans.sort((a, b) => compare(a.name, b.name)), state.totals.bans)
      refusals.update(Object.entries(state.server.refusals).map(([limit, count]) => ({limit, count})).sort((a, b) => b.count - a.count))
    },
    role: () => { form.hidden = off.hidden = !may('operator') },
    translate() {
      render()
      const chosen = menu.value
      menu.replaceWith(menu = banTime({'aria-label': text('ban-for')}))
      menu.value = chosen
      debugging.update(debugging.items)
    },
  }
}

