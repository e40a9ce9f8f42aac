// Tables that update their rows in place, so that focus, selection and scroll position are kept.

import {number, of, visible} from './format.js'

// The maximum number of rows in a table. More would not help a reader, and would slow down the browser.
const most = 200

let words = []

// filter sets the words that a row must contain to be shown.
export function filter(value) {
  words = value.toLocaleLowerCase().split(/\s+/).filter(word => word)
}

export const filtering = () => words.length > 0

// set shows a text of the page, a number or a time, and does nothing if it is already shown.
export function set(element, value) {
  if (element.shown === value) return
  element.shown = value
  element.textContent = value
}

// setNodes shows texts and nodes.
export function setNodes(element, nodes) {
  const shown = nodes.map(node => node.textContent ?? node).join('')
  if (element.shown === shown) return
  element.shown = shown
  element.replaceChildren(...nodes)
}

// setForeign shows a text chosen by clients or administrators, such as a name.
export function setForeign(element, value) {
  if (element.shown === value) return
  element.shown = value
  element.replaceChildren(visible(value))
}

// setReason shows a reason from the server, in English, after a text of the page.
export function setReason(element, before, value) {
  const shown = before + value
  if (element.shown === shown) return
  element.shown = shown
  element.replaceChildren(before, visible(value, 'en'))
}

// A Table shows each item in a row. columns maps the column names from the table head to functions that show
// an item in a cell.
export class Table {
  // key returns the identity of an item. words returns the texts that the filter searches. subject lists the
  // columns that identify the row to a reader; the first of them is its row header.
  constructor(id, {columns, key, words, subject}) {
    this.table = document.getElementById(id)
    this.body = this.table.tBodies[0]
    this.columns = Array.from(this.table.tHead.rows[0].cells, head => head.className)
    Object.assign(this, {id, show: columns, key, words, subject})
    this.rows = new Map()
    this.made = 0
    this.update([])
  }

  // update replaces the items. all is their number before the list was cut off.
  update(items, all = items.length) {
    this.items = items
    this.all = all
    this.render()
  }

  render() {
    const matching = this.items.filter(item => this.matches(item))
    const shown = matching.slice(0, most)
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
      for (const [i, column] of this.columns.entries()) this.show[column](row.cells[i], item)
    }
    const count = shown.length < this.all ? of(number(shown.length), number(this.all)) : [number(this.all)]
    setNodes(document.getElementById(`${this.id}-shown`), count)
    document.getElementById(`${this.id}-empty`).hidden = shown.length > 0
    this.table.hidden = shown.length === 0
  }

  matches(item) {
    const text = this.words(item).join('\n').toLocaleLowerCase()
    return words.every(word => text.includes(word))
  }

  row(key) {
    let row = this.rows.get(key)
    if (row) return row
    row = document.createElement('tr')
    row.id = `${this.id}-${++this.made}`
    for (const column of this.columns) {
      const cell = document.createElement(column === this.subject[0] ? 'th' : 'td')
      if (column === this.subject[0]) cell.scope = 'row'
      if (this.subject.includes(column)) cell.id = `${row.id}-${column}`
      cell.className = column
      row.append(cell)
    }
    this.rows.set(key, row)
    return row
  }

  // remove deletes a row. If the row has the focus, the heading gets it, because otherwise the next key press
  // would start at the top of the page.
  remove(key, row) {
    if (row.contains(document.activeElement)) this.focus()
    row.remove()
    this.rows.delete(key)
  }

  focus() {
    document.getElementById(`${this.id}-heading`).focus()
  }

  // buttons adds buttons to a cell, once. The accessible name of each consists of its action and the subject
  // of the row.
  buttons(cell, actions) {
    if (cell.firstChild) return
    const row = cell.parentElement
    for (const [label, act] of Object.entries(actions)) {
      const button = document.createElement('button')
      button.type = 'button'
      button.id = `${row.id}-button-${cell.childElementCount}`
      button.textContent = label
      button.setAttribute('aria-labelledby', [button.id, ...this.subject.map(column => `${row.id}-${column}`)].join(' '))
      button.addEventListener('click', () => act(row.item, this.subject.map(column => this.cell(row, column).textContent)))
      cell.append(button)
    }
  }

  cell(row, column) {
    return row.cells[this.columns.indexOf(column)]
  }
}
