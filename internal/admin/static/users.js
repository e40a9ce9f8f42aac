// The screen Users: finds, adds and changes users, and shows what they read.

import {call, errorText, get} from './api.js'
import {announce, ask, closing, complain, dialog} from './dialogs.js'
import {button, h, set, setBadge, setForeign, setNodes, setPath, setTime} from './dom.js'
import {day, languageName, number, text, time, visible} from './format.js'
import {may} from './role.js'
import {Table} from './table.js'

const perPage = 100
const texts = {} // errors of users are shown with the reason of the server
const typingPause = 250 // milliseconds

const permissions = ['list', 'read', 'write', 'delete', 'rename', 'mkdir', 'password']

// Settings with a field of their own. The others are edited as JSON.
const plain = ['home', 'root', 'quota', 'expires', 'language']
const own = [...plain, 'permissions', 'disabled', 'must_change_password']

const address = ({tenant, name}) => `users/${encodeURIComponent(tenant)}/${encodeURIComponent(name)}`
const same = (a, b) => JSON.stringify(a) === JSON.stringify(b)
const isObject = value => value !== null && typeof value === 'object' && !Array.isArray(value)

// difference returns the merge patch (RFC 7396) that turns one object into another.
export function difference(from, to) {
  const patch = {}
  for (const key of new Set([...Object.keys(from), ...Object.keys(to)])) {
    if (!Object.hasOwn(to, key)) patch[key] = null
    else if (isObject(from[key]) && isObject(to[key])) {
      if (!same(from[key], to[key])) patch[key] = difference(from[key], to[key])
    } else if (!same(from[key], to[key])) patch[key] = to[key]
  }
  return patch
}

// generate returns a random password of 20 characters, without characters that are easily confused.
export function generate() {
  const alphabet = 'abcdefghijkmnpqrstuvwxyzABCDEFGHJKLMNPQRSTUVWXYZ23456789'
  let password = ''
  while (password.length < 20) {
    const [n] = crypto.getRandomValues(new Uint8Array(1))
    if (n < 256 - 256 % alphabet.length) password += alphabet[n % alphabet.length]
  }
  return password
}

let ids = 0

// field returns a label with a control, and a place for its error. path names the setting.
function field(name, control, path) {
  control.id ||= `field-${++ids}`
  const error = h('p', {class: 'problem', id: `${control.id}-error`, role: 'alert'})
  control.setAttribute('aria-describedby', error.id)
  return h('div', {class: 'field', 'data-path': path}, h('label', {for: control.id, text: name}), control, error)
}

function check(name, path, properties = {}) {
  const box = h('input', {type: 'checkbox', id: `field-${++ids}`, ...properties})
  return [box, h('div', {class: 'field check', 'data-path': path}, box, h('label', {for: box.id, text: name}), h('p', {class: 'problem', role: 'alert'}))]
}

// passwordField returns a field for a new password, which the browser can generate.
function passwordField() {
  const input = h('input', {type: 'text', autocomplete: 'off', autocapitalize: 'none', spellcheck: 'false', class: 'code', dir: 'ltr'})
  const node = field('new-password', input, 'password')
  node.insertBefore(h('div', {class: 'row'}, input, button('generate', () => { input.value = generate() }),
    button('copy', async event => {
      await navigator.clipboard?.writeText(input.value)
      event.target.textContent = text('copied')
    })), node.lastElementChild)
  node.append(h('p', {class: 'hint', text: 'password-once'}))
  return [input, node]
}

// showFields shows the errors of fields next to them, and returns those that have no field here.
function showFields(form, fields) {
  for (const node of form.querySelectorAll('.field > .problem')) node.textContent = ''
  const others = []
  for (const {path, error} of fields) {
    const key = path.replace(/^settings\./, '').split(/[.[]/)[0]
    const place = form.querySelector(`[data-path="${CSS.escape(own.includes(key) || key === 'password' || key === 'name' ? key : 'other')}"] > .problem`)
    if (place) place.append(visible(`${path}: ${error}`, 'en'), ' ')
    else others.push(`${path}: ${error}`)
  }
  form.querySelector('.field > .problem:not(:empty)')?.parentElement.querySelector('input, select, textarea')?.focus()
  return others
}

// state returns the kind and the words of the badge of a user.
function stateOf({settings, online}) {
  if (settings.disabled) return ['bad', text('disabled')]
  if (expired(settings.expires)) return ['bad', text('expired')]
  return online > 0 ? ['good', text('online'), ...online > 1 ? [` ${number(online)}`] : []] : ['quiet', text('active')]
}

// expired reports whether the last day, or a time, is over.
function expired(expires) {
  if (!expires) return false
  const end = new Date(expires.length === 10 ? `${expires}T23:59:59.999Z` : expires)
  return end < new Date()
}

const setExpiry = (cell, value) => value?.length === 10
  ? setNodes(cell, h('time', {datetime: value}, day(new Date(value)))) : setTime(cell, value, time)

// create returns the screen.
export function create({go, replace, languages}) {
  const words = h('input', {type: 'search', id: 'users-words', label: 'find-user', hint: 'find-user', autocomplete: 'off', spellcheck: 'false'})
  const tenant = h('select', {id: 'users-tenant', label: 'tenant'}, h('option', {value: '', text: 'all-tenants'}))
  const add = button('add-user', () => go('users', {add: '1', tenant: tenant.value}), {class: 'primary', id: 'add-user'})
  const previous = button('previous', () => turn(-1), {id: 'users-previous'})
  const next = button('next', () => turn(1), {id: 'users-next'})

  const table = new Table({
    id: 'users', plain: true, key: u => `${u.tenant}/${u.name}`, subject: ['user', 'tenant'],
    columns: {
      user: (cell, u) => {
        const link = h('a', {href: `users?${new URLSearchParams({tenant: u.tenant, name: u.name})}`}, visible(u.name))
        setNodes(cell, link)
      },
      tenant: (cell, u) => setForeign(cell, u.tenant),
      state: (cell, u) => setBadge(cell, ...stateOf(u)),
      'last-login': (cell, u) => u.last_login ? setTime(cell, u.last_login, time) : set(cell, text('never')),
      root: (cell, u) => setPath(cell, u.settings.root ?? '/'),
      language: (cell, u) => set(cell, u.settings.language ? languageName(u.settings.language) : text('default')),
      expires: (cell, u) => u.settings.expires ? setExpiry(cell, u.settings.expires) : set(cell, text('never')),
    },
    actions: u => {
      const subject = [u.name, u.tenant]
      const actions = [['activity', () => go('activity', {user: u.name, tenant: u.tenant})]]
      if (!may('administrator') || !u.writable) return actions
      const change = settings => async () => {
        const {etag} = await call('GET', address(u))
        await call('PATCH', address(u), {etag, body: {settings}})
      }
      actions.unshift(['edit', () => go('users', {tenant: u.tenant, name: u.name})], ['reset-password', () => resetPassword(u)])
      actions.push(u.settings.disabled
        ? ['enable', () => ask({question: 'enable-question', action: 'enable', subject, done: 'saved', dangerous: false, texts, act: change({disabled: null})}).then(load)]
        : ['disable', () => ask({question: 'disable-question', action: 'disable', subject, done: 'saved', texts, act: change({disabled: true})}).then(load), 'danger'])
      actions.push(['delete', () => remove(u), 'danger'])
      return actions
    },
  })
  table.tools.append(words, tenant, add)

  const preview = textsOf(tenant)
  const list = h('div', {}, table.node, h('div', {class: 'pages'}, previous, next), preview.node)
  const editor = h('div', {hidden: true})
  const node = h('div', {}, list, editor)

  // Pages, by the name after which each begins.
  let pages = [''], page = 0, after = ''
  let loading
  async function load() {
    loading?.abort()
    loading = new AbortController()
    try {
      const answer = await get('users', {tenant: tenant.value, q: words.value, after: pages[page], limit: perPage}, loading.signal)
      after = answer.next ?? ''
      table.update(answer.users, null)
      previous.hidden = page === 0
      next.hidden = !after
    } catch (error) {
      if (error.name !== 'AbortError') complain(error, texts)
    }
  }

  function turn(by) {
    if (by > 0) pages[page + 1] = after
    page += by
    table.heading.focus()
    load()
  }

  let typing
  const restart = () => {
    [pages, page] = [[''], 0]
    load()
  }
  words.addEventListener('input', () => {
    clearTimeout(typing)
    typing = setTimeout(restart, typingPause)
  })
  tenant.addEventListener('change', () => {
    replace('users', {tenant: tenant.value})
    restart()
    preview.show()
  })

  const remove = u => ask({
    question: 'delete-user-question', action: 'delete', subject: [u.name, u.tenant], done: 'user-deleted', texts,
    act: async () => {
      const {etag} = await call('GET', address(u))
      await call('DELETE', address(u), {etag})
      if (!editor.hidden) go('users')
    },
  }).then(load)

  async function resetPassword(u) {
    const [input, box] = passwordField()
    const [must, mustBox] = check('must-change', 'must_change_password')
    input.value = generate()
    input.autofocus = true
    const form = h('div', {}, box, mustBox)
    const answer = await dialog({
      title: [text('reset-password')], content: [h('p', {class: 'subject'}, visible(u.name), ' ', visible(u.tenant)), form],
      buttons: [closing('cancel'), closing('save', 'save', {class: 'primary'})], texts,
      submit: async () => {
        try {
          const {etag} = await call('GET', address(u))
          await call('PATCH', address(u), {etag, body: {password: input.value, settings: must.checked ? {must_change_password: true} : {}}})
        } catch (error) {
          if (!error.fields?.length) throw error
          showFields(form, error.fields)
          return false
        }
      },
    })
    if (answer === 'save') announce(text('saved'))
  }

  // edit shows the form of a user, or of a new user if there is no name.
  let editing = ''
  async function edit({tenant: of, name}) {
    const key = `${of} ${name ?? ''}`
    if (editing === key && !editor.hidden) return
    let current = {data: {tenant: of, name: '', settings: {}, writable: true}}, tenants = []
    try {
      if (name) current = await call('GET', address({tenant: of, name}))
      else tenants = await get('tenants')
    } catch (error) {
      return complain(error, texts)
    }
    editing = key
    editor.replaceChildren(form(current, tenants.map(({name}) => name)))
    show(true)
  }

  function show(editorShown) {
    editor.hidden = !editorShown
    list.hidden = editorShown
    if (editorShown) editor.querySelector('h2').focus()
    else editing = ''
  }

  function form({data: user, etag}, tenants) {
    const adding = !user.name
    const locked = !may('administrator') || !user.writable
    const name = h('input', {autocomplete: 'off', autocapitalize: 'none', spellcheck: 'false', required: true})
    const where = h('select', {required: true}, ...tenants.map(name => new Option(name, name, false, name === user.tenant)))
    const [password, passwordBox] = passwordField()
    const inputs = {
      home: h('input', {dir: 'ltr', placeholder: '/'}), root: h('input', {dir: 'ltr', placeholder: '/'}),
      quota: h('input', {dir: 'ltr', placeholder: '10GiB'}), expires: h('input', {dir: 'ltr', placeholder: '2027-12-31'}),
      language: h('select', {}, h('option', {value: '', text: 'default'}), ...languages().map(({tag, name}) => h('option', {value: tag, lang: tag}, name))),
    }
    const [disabled, disabledBox] = check('disabled', 'disabled')
    const [must, mustBox] = check('must-change', 'must_change_password')
    const boxes = permissions.map(p => h('input', {type: 'checkbox', value: p, id: `field-${++ids}`}))
    const standard = h('input', {type: 'checkbox', id: `field-${++ids}`})
    const other = h('textarea', {class: 'code', dir: 'ltr', rows: 4, spellcheck: 'false'})
    standard.addEventListener('change', () => {
      for (const box of boxes) {
        box.disabled = standard.checked
        if (standard.checked) box.checked = box.value !== 'password'
      }
    })

    function fill(settings) {
      for (const key of plain) inputs[key].value = settings[key] ?? ''
      disabled.checked = settings.disabled ?? false
      must.checked = settings.must_change_password ?? false
      standard.checked = settings.permissions === undefined
      for (const box of boxes) {
        box.disabled = standard.checked
        box.checked = settings.permissions?.includes(box.value) ?? box.value !== 'password'
      }
      const rest = Object.fromEntries(Object.entries(settings).filter(([key]) => !own.includes(key)))
      other.value = Object.keys(rest).length > 0 ? JSON.stringify(rest, null, 2) : ''
    }

    // settings returns what the form says.
    function settings() {
      const typed = other.value.trim() ? JSON.parse(other.value) : {}
      for (const key of plain) if (inputs[key].value.trim()) typed[key] = inputs[key].value.trim()
      if (disabled.checked) typed.disabled = true
      if (must.checked) typed.must_change_password = true
      if (!standard.checked) typed.permissions = boxes.filter(box => box.checked).map(box => box.value)
      return typed
    }

    const failed = h('p', {class: 'problem', role: 'alert'})
    const save = h('button', {text: 'save', class: 'primary'})
    const fieldset = h('fieldset', {disabled: locked},
      ...adding ? [field('user', name, 'name'), field('tenant', where, 'tenant'), passwordBox] : [],
      h('div', {class: 'columns'}, field('root', inputs.root, 'root'), field('home', inputs.home, 'home'),
        field('quota', inputs.quota, 'quota'), field('expires', inputs.expires, 'expires'), field('language', inputs.language, 'language')),
      h('fieldset', {class: 'field', 'data-path': 'permissions'}, h('legend', {text: 'permissions'}),
        h('div', {class: 'checks'}, h('span', {}, standard, h('label', {for: standard.id, text: 'default'})),
          ...boxes.map(box => h('span', {}, box, h('label', {for: box.id, lang: 'en', class: 'code'}, box.value)))), h('p', {class: 'problem', role: 'alert'})),
      disabledBox, mustBox, field('other-settings', other, 'other'), failed)
    fill(user.settings)

    const node = h('form', {class: 'panel editor', novalidate: true},
      h('div', {class: 'heading'}, adding ? h('h2', {tabindex: -1, text: 'add-user'}) : h('h2', {tabindex: -1}, visible(user.name), ' ', h('span', {class: 'count'}, visible(user.tenant)))),
      ...locked ? [h('p', {class: 'note'}, may('administrator') ? visible(user.reason || user.source || '', 'en') : h('span', {text: 'not-allowed'}))] : [], fieldset,
      h('div', {class: 'buttons'}, button('cancel', () => go('users')),
        ...adding || locked ? [] : [button('reset-password', () => resetPassword(user)), button('delete', () => remove(user), {class: 'danger'})],
        ...locked ? [] : [save]))

    node.addEventListener('submit', async event => {
      event.preventDefault()
      failed.replaceChildren()
      showFields(node, [])
      let wanted
      try {
        wanted = settings()
      } catch (error) {
        return showFields(node, [{path: 'other', error: error.message}])
      }
      save.disabled = true
      try {
        if (adding) {
          await call('POST', 'users', {body: {tenant: where.value, name: name.value, settings: wanted, ...password.value ? {password: password.value} : {}}})
        } else {
          await call('PATCH', address(user), {etag, body: {settings: difference(user.settings, wanted)}})
        }
        go('users')
        announce(text('saved'))
      } catch (error) {
        if (error.status === 412) await conflict(wanted)
        else if (error.fields?.length) failed.append(...showFields(node, error.fields).map(line => visible(line, 'en')))
        else failed.replaceChildren(...errorText(error, texts))
      } finally {
        save.disabled = false
      }
    })

    // conflict shows what somebody else has changed, and lets the reader decide.
    async function conflict(wanted) {
      const now = await call('GET', address(user))
      const show = value => value === undefined ? '–' : typeof value === 'string' ? value : JSON.stringify(value)
      const changed = [...new Set([...Object.keys(now.data.settings), ...Object.keys(wanted)])].filter(key => !same(now.data.settings[key], wanted[key]))
      const answer = await dialog({
        title: [text('conflict')], wide: true, content: [
          h('p', {class: 'subject'}, visible(user.name), ' ', visible(user.tenant)),
          h('table', {class: 'small'}, h('thead', {}, h('tr', {}, ...['setting', 'theirs', 'yours'].map(name => h('th', {scope: 'col', text: name})))),
            h('tbody', {}, ...changed.map(key => h('tr', {}, h('th', {scope: 'row', class: 'code'}, key), h('td', {}, visible(show(now.data.settings[key]))),
            h('td', {}, same(user.settings[key], wanted[key]) ? '' : visible(show(wanted[key]))))))),
        ],
        buttons: [closing('cancel'), closing('take-theirs', 'theirs'), closing('keep-mine', 'mine', {class: 'primary'})],
      })
      if (answer === '') return
      // Settings that only somebody else has changed stay as they are now.
      const mine = difference(user.settings, wanted)
      user = now.data
      etag = now.etag
      fill(user.settings)
      if (answer === 'mine') {
        fill(apply(user.settings, mine))
        node.requestSubmit(save)
      }
    }
    return node
  }

  return {
    node,
    show(next) {
      if (next.name || next.add) return edit({tenant: next.tenant ?? '', name: next.name})
      show(false)
      if (next.tenant && !Array.from(tenant.options).some(({value}) => value === next.tenant)) tenant.add(new Option(next.tenant, next.tenant))
      tenant.value = next.tenant ?? ''
      load()
      preview.show()
    },
    state({tenants}) {
      const names = tenants.map(({name}) => name).sort()
      if (names.length === tenant.options.length - 1 && names.every((name, i) => tenant.options[i + 1].value === name)) return
      const chosen = tenant.value
      tenant.replaceChildren(h('option', {value: '', text: 'all-tenants'}), ...names.map(name => new Option(name, name, false, name === chosen)))
      preview.show()
    },
    role: () => { add.hidden = !may('administrator') },
    translate() {
      table.update(table.items, null)
      preview.translate()
    },
  }
}

// apply returns an object changed by a merge patch (RFC 7396).
export function apply(object, patch) {
  const result = {...object}
  for (const [key, value] of Object.entries(patch)) {
    if (value === null) delete result[key]
    else result[key] = isObject(value) && isObject(result[key]) ? apply(result[key], value) : value
  }
  return result
}

// textsOf returns a section that shows the greeting of a tenant as its users read it, in each language.
function textsOf(tenant) {
  const menu = h('select', {id: 'texts-language', label: 'language'})
  const shown = h('dl', {class: 'transcript'})
  const node = h('section', {class: 'panel', hidden: true, 'aria-labelledby': 'texts-heading'},
    h('div', {class: 'heading'}, h('h2', {id: 'texts-heading', text: 'users-see'}), h('div', {class: 'tools'}, menu)), shown)
  async function show() {
    node.hidden = !tenant.value
    if (!tenant.value) return
    try {
      const answer = await get(`tenants/${encodeURIComponent(tenant.value)}/texts`, {lang: menu.value})
      menu.replaceChildren(...answer.languages.map(({tag}) => new Option(languageName(tag), tag, false, tag === answer.language)))
      const {direction} = answer.languages.find(({tag}) => tag === answer.language) ?? {}
      const lines = [['greeting', answer.greeting], ['login-message', answer.login]]
      shown.replaceChildren(...lines.map(([name, lines]) => h('div', {}, h('dt', {text: name}),
        h('dd', {lang: answer.language, dir: direction}, ...lines.flatMap((line, i) => i ? [h('br'), visible(line)] : [visible(line)])))))
    } catch (error) {
      shown.replaceChildren(h('div', {class: 'problem'}, ...errorText(error, texts)))
    }
  }
  menu.addEventListener('change', show)
  return {
    node, show, translate() {
      for (const option of menu.options) option.textContent = languageName(option.value)
    },
  }
}

