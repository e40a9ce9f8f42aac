// Formats what the page shows in the language of its reader: texts from the catalogs, and numbers, sizes and
// times with Intl.

const page = JSON.parse(document.getElementById('texts').textContent)

// The language of the page, with the region of the browser if it has the same language, because dates differ
// between en-GB and en-US.
const written = tag => {
  const {language, script} = new Intl.Locale(tag).maximize()
  return `${language}-${script}`
}
const locale = navigator.languages.find(tag => written(tag) === written(page.lang)) ?? page.lang

// text returns the text page-NAME of the catalogs.
export const text = name => shared(`page-${name}`)

// shared returns a text that the page shares with replies or findings, by its identifier in the catalogs.
export const shared = id => page.texts[id]

// filled returns a text as nodes, with values for its placeholders. String values are isolated, so that each
// keeps its own writing direction.
export function filled(name, values) {
  const node = value => typeof value === 'string' ? isolated(value) : value
  return text(name).split(/\{(\w+)\}/).map((piece, i) => i % 2 ? node(values[piece]) : piece)
}

// isolated returns a node whose parts stay together in every writing direction, such as a number and its
// unit. In Hebrew, Intl writes 1 MB as the unit, a mark (U+200F) and the number, to be read from right to
// left.
export function isolated(...parts) {
  const node = document.createElement('bdi')
  node.append(...parts)
  if (node.textContent.includes('\u200f')) node.dir = 'rtl'
  return node
}

// isolating returns a sentence from the server as nodes. The values that the sentence quotes keep their own
// writing direction.
export function isolating(sentence, args) {
  const split = (piece, arg) => piece.split(arg).flatMap((part, i) => i ? [visible(arg), part] : [part])
  return args.filter(arg => arg).reduce((nodes, arg) => nodes.flatMap(node => typeof node === 'string' ? split(node, arg) : [node]), [sentence])
}

const decimal = new Intl.NumberFormat(locale)
const share = new Intl.NumberFormat(locale, {style: 'percent'})
const languages = new Intl.DisplayNames(locale, {type: 'language'})
const timeOfDay = new Intl.DateTimeFormat(locale, {timeStyle: 'medium'})
const dayAndTime = new Intl.DateTimeFormat(locale, {dateStyle: 'medium', timeStyle: 'short'})
const order = new Intl.Collator(locale)

export const number = n => decimal.format(n)
export const percent = n => share.format(n)
export const compare = (a, b) => order.compare(a, b)
export const languageName = tag => tag ? languages.of(tag) : ''
export const of = (part, whole) => filled('of', {Part: part, Whole: whole})
export const bytes = n => scaled(n, '')

// speed returns a node. In right-to-left text, the words for "per second" come after a size in Latin letters.
export function speed(n) {
  const text = scaled(n, '-per-second')
  const [, size, rest] = document.dir === 'rtl' && text.match(/^(.*\p{Script=Latin})(.*\p{L}.*)$/u) || []
  if (!rest) return isolated(text)
  const node = isolated(isolated(size), rest)
  node.dir = 'rtl'
  return node
}

const binary = shared('size-units').split(' ')

// scaled writes a number of bytes in the largest binary unit that it has one of, rounded as in replies. Intl has decimal units only, so their names
// are replaced by the names of the binary ones.
function scaled(n, per) {
  const units = ['byte', 'kilobyte', 'megabyte', 'gigabyte', 'terabyte', 'petabyte']
  let i = 0
  for (; n >= 1024 && i < units.length - 1; i++) n /= 1024
  const format = (unit, unitDisplay) => new Intl.NumberFormat(locale, {style: 'unit', unit, unitDisplay, maximumFractionDigits: i > 0 ? 1 : 0, roundingMode: 'halfEven'})
  if (i === 0) return format(units[i] + per, per ? 'short' : 'long').format(n)
  const name = format(units[i], 'short').formatToParts(n).find(part => part.type === 'unit').value
  return format(units[i] + per, 'short').format(n).replace(name, binary[i - 1])
}

// time formats the time of day, with the date unless it is today.
export function time(date) {
  const today = new Date().toDateString() === date.toDateString()
  return (today ? timeOfDay : dayAndTime).format(date)
}

// Characters that are invisible or change the order of others. Joiners (U+200C, U+200D) are allowed, because
// Persian and Hindi words and emoji need them.
const unseen = /([\p{Cc}\p{Zl}\p{Zp}]|(?![\u200c\u200d])\p{Cf})/u

// visible returns a text from a client or the server as nodes that cannot change the text around them.
// Invisible characters are replaced by their code points. lang is the language of the text, if known.
export function visible(value, lang) {
  const node = isolated()
  if (lang) node.lang = lang
  for (const [i, piece] of value.split(unseen).entries()) {
    if (i % 2 === 0) {
      node.append(piece)
      continue
    }
    const name = document.createElement('span')
    name.className = 'character'
    name.textContent = `U+${piece.codePointAt(0).toString(16).toUpperCase().padStart(4, '0')}`
    node.append(name)
  }
  return node
}
