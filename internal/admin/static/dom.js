// Builds and updates the elements of the page.

import {path, text, visible} from './format.js'

// h returns an element. Its properties are attributes, except for these: text, label and hint are the names of
// texts for the content, the accessible name and the placeholder, which follow the language of the reader; on
// holds event listeners.
export function h(tag, properties = {}, ...children) {
  const element = document.createElement(tag)
  for (const [name, value] of Object.entries(properties)) {
    if (value === undefined || value === null || value === false) continue
    if (name === 'on') {
      for (const [event, listener] of Object.entries(value)) element.addEventListener(event, listener)
    } else if (name === 'text' || name === 'label' || name === 'hint') {
      element.dataset[name] = value
      translate(element)
    } else {
      element.setAttribute(name, value === true ? '' : value)
    }
  }
  element.append(...children)
  return element
}

// translate shows the texts of an element in the language of the reader.
export function translate(element) {
  const {dataset} = element
  if (dataset.text) element.textContent = text(dataset.text)
  if (dataset.label) element.setAttribute('aria-label', text(dataset.label))
  if (dataset.hint) element.setAttribute('placeholder', text(dataset.hint))
}

// icon returns a symbol of the page. Screen readers skip it.
export function icon(name) {
  const svg = document.createElementNS('http://www.w3.org/2000/svg', 'svg')
  svg.setAttribute('class', 'icon')
  svg.setAttribute('aria-hidden', 'true')
  const use = document.createElementNS('http://www.w3.org/2000/svg', 'use')
  use.setAttribute('href', `#icon-${name}`)
  svg.append(use)
  return svg
}

// button returns a button with the text of this name.
export const button = (name, click, properties = {}) => h('button', {type: 'button', text: name, on: {click}, ...properties})

// set shows a text of the page, a number or a time, and does nothing if it is already shown.
export function set(element, value) {
  if (element.shown === value) return
  element.shown = value
  element.textContent = value
}

// setNodes shows texts and nodes.
export function setNodes(element, ...nodes) {
  const shown = nodes.map(node => node.outerHTML ?? node).join('')
  if (element.shown === shown) return
  element.shown = shown
  element.replaceChildren(...nodes)
}

// setForeign shows a text chosen by clients or administrators, such as a name.
export const setForeign = (element, value) => setNodes(element, value ? visible(value) : '–')

// setPath shows a pathname.
export const setPath = (element, value) => setNodes(element, value ? path(value) : '–')

// setTime shows a time from the API (RFC 3339).
export function setTime(element, value, format) {
  if (!value) return set(element, '–')
  setNodes(element, h('time', {datetime: value}, format(new Date(value))))
}

// setBadge shows a short state. kind is good, bad, warn or quiet.
export const setBadge = (element, kind, ...words) => setNodes(element, h('span', {class: `badge ${kind}`}, ...words))
