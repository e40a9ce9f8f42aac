// Tables that update their rows in place, so that focus, selection and scroll position are kept.

import {number, of, text} from './format.js'
import {h, icon, setNodes} from './dom.js'

// The maximum number of rows in a table. More would not help a reader, and would slow down the browser.
const most = 200

// A Table shows each item in a row. On narrow screens, CSS shows each row as a card, so the roles of the elements
// are explicit, and each cell has the name of its column.
export class Table {
  // id names the table in the page. title is the name of the text of its heading. columns maps the names of the
  // columns, whose texts have the same names, to functions that show an item in a cell. key returns the identity
  // of an item. subject lists the columns that identify the row to a reader; the first of them is its row header.
  // actions returns the actions that the reader may take on an item: [text name, function, class]. empty is the
  // name of the text that is shown without rows. plain hides the heading, if it repeats the name of the screen.
  constructor({id, title = id, columns, key, subject, actions, empty = 'empty', plain}) {
    this.columns = Object.keys(columns)
    Object.assign(this, {id, title, show: columns, key, subject, actions})
    this.heading = h('h2', {id: `${id}-heading`, class: plain ? 'unseen' : null, tabindex: -1, text: title})
    this.count = h('p', {class: 'count', id: `${id}-shown`})
    this.tools = h('div', {class: 'tools'})
    this.body = h('tbody', {role: 'rowgroup'})
    const names = actions ? [...this.columns, 'actions'] : this.columns
    this.table = h('table', {id, role: 'table', 'aria-labelledby': `${id}-heading`},
      h('thead', {role: 'rowgroup'}, h('tr', {role: 'row'}, ...names.map(name => h('th', {role: 'columnheader', scope: 'col', class: name, text: name})))),
      this.body)
    this.empty = h('p', {class: 'empty', id: `${id}-empty`, text: empty})
    this.node = h('section', {class: 'panel', 'aria-labelledby': `${id}-heading`},
      h('div', {class: 'heading'}, this.heading, this.count, this.tools),
      h('div', {class: 'scroll'}, this.table), this.empty)
    this.rows = new Map()
    this.made = 0
    this.update([])
  }

  // update replaces the items. all is their number before the list was cut off; null hides it.
  update(items, all = items.length) {
    this.items = items
    const shown = items.slice(0, most)
    const keys = new Set(shown.map(this.key))
    for (const [key, row] of this.rows) {
      if (!keys.has(key)) this.remove(key, row)
    }
    let next = this.body.firstElementChild
    for (const item of shown) {
      const row = this.row(this.key(item))
      if (row === next) {
        next = next.nextElementSibling
      } else {
        this.body.insertBefore(row, next)
      }
      row.item = item
      for (const [i, column] of this.columns.entries()) {
        this.show[column](row.cells[i], item)
        row.cells[i].dataset.column = text(column)
      }
      if (this.actions) row.lastElementChild.firstElementChild.hidden = this.actions(item).length === 0
    }
    const count = all === null ? '' : shown.length < all ? of(number(shown.length), number(all)) : [number(all)]
    setNodes(this.count, ...count)
    this.empty.hidden = shown.length > 0
    this.table.hidden = shown.length === 0
  }

  row(key) {
    let row = this.rows.get(key)
    if (row) return row
    row = h('tr', {role: 'row', id: `${this.id}-${++this.made}`})
    for (const column of this.columns) {
      const header = column === this.subject[0]
      row.append(h(header ? 'th' : 'td', {
        role: header ? 'rowheader' : 'cell', scope: header ? 'row' : null, class: column,
        id: this.subject.includes(column) ? `${row.id}-${column}` : null,
      }))
    }
    if (this.actions) row.append(h('td', {role: 'cell', class: 'actions'}, this.menu(row)))
    this.rows.set(key, row)
    return row
  }

  // menu returns the button that opens the menu of a row. Its accessible name includes the subject of the row.
  menu(row) {
    const open = h('button', {
      type: 'button', class: 'more', id: `${row.id}-menu`, label: 'actions', 'aria-haspopup': 'menu',
      'aria-labelledby': [`${row.id}-menu`, ...this.subject.map(column => `${row.id}-${column}`)].join(' '),
      on: {click: () => openMenu(open, this.actions(row.item), row.item, this)},
    }, icon('more'))
    return open
  }

  // remove deletes a row. If the row has the focus, the heading gets it, because otherwise the next key press
  // would start at the top of the page.
  remove(key, row) {
    if (row.contains(document.activeElement)) this.heading.focus()
    row.remove()
    this.rows.delete(key)
  }
}

// openMenu shows the actions on an item below a button.
export function openMenu(opener, actions, item, table) {
  const menu = h('div', {class: 'menu', role: 'menu', popover: 'auto', 'aria-labelledby': opener.id})
  for (const [name, act, style] of actions) {
    menu.append(h('button', {
      type: 'button', role: 'menuitem', tabindex: -1, class: style, text: name,
      on: {click: () => {
        menu.hidePopover()
        act(item, table)
      }},
    }))
  }
  menu.addEventListener('keydown', event => {
    const items = Array.from(menu.children)
    const at = items.indexOf(document.activeElement)
    const to = {ArrowDown: at + 1, ArrowUp: at - 1 + items.length, Home: 0, End: items.length - 1}[event.key]
    if (event.key === 'Tab') menu.hidePopover()
    if (to === undefined) return
    event.preventDefault()
    items[to % items.length].focus()
  })
  menu.addEventListener('toggle', event => {
    if (event.newState === 'open') return
    opener.setAttribute('aria-expanded', 'false')
    if (document.activeElement === document.body || menu.contains(document.activeElement)) opener.focus()
    menu.remove()
  })
  document.getElementById('content').append(menu)
  menu.showPopover()
  opener.setAttribute('aria-expanded', 'true')
  // Below the button, at its end; above it if there is no room.
  const at = opener.getBoundingClientRect()
  const {width, height} = menu.getBoundingClientRect()
  const left = document.documentElement.dir === 'rtl' ? at.left : at.right - width
  menu.style.left = `${Math.max(8, Math.min(left, innerWidth - width - 8))}px`
  menu.style.top = `${at.bottom + height > innerHeight ? Math.max(8, at.top - height) : at.bottom}px`
  menu.firstElementChild.focus()
}
