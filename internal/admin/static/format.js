// Formats what the page shows in the language of its reader: texts from the catalogs, and numbers, sizes and
// times with Intl.

let page, locale, formats

// use sets the texts and the language. It is called again when the reader chooses another language.
export function use(texts) {
  page = texts
  // The region of the browser is used if it has the same language, because dates differ between en-GB and en-US.
  const written = tag => {
    const {language, script} = new Intl.Locale(tag).maximize()
    return `${language}-${script}`
  }
  locale = navigator.languages.find(tag => written(tag) === written(page.lang)) ?? page.lang
  formats = {
    decimal: new Intl.NumberFormat(locale),
    share: new Intl.NumberFormat(locale, {style: 'percent'}),
    rough: new Intl.NumberFormat(locale, {maximumFractionDigits: 1}),
    languages: new Intl.DisplayNames(locale, {type: 'language'}),
    second: new Intl.DateTimeFormat(locale, {timeStyle: 'medium'}),
    minute: new Intl.DateTimeFormat(locale, {timeStyle: 'short'}),
    day: new Intl.DateTimeFormat(locale, {dateStyle: 'medium', timeZone: 'UTC'}),
    dayAndTime: new Intl.DateTimeFormat(locale, {dateStyle: 'medium', timeStyle: 'medium'}),
    order: new Intl.Collator(locale),
    units: new Map(),
  }
}

// language returns the tag of the language in use.
export const language = () => page.lang

// text returns the text page-NAME of the catalogs.
export const text = name => shared(`page-${name}`)

// shared returns a text that the page shares with replies or findings, by its identifier in the catalogs.
export const shared = id => page.texts[id] ?? id

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

export const number = n => formats.decimal.format(n)
export const rough = n => formats.rough.format(n)
export const percent = n => formats.share.format(n)
export const compare = (a, b) => formats.order.compare(a, b)
export const of = (part, whole) => filled('of', {Part: part, Whole: whole})
export const bytes = n => scaled(n, '')

// languageName returns the name of a language, or the tag if it is not valid.
export function languageName(tag) {
  try {
    return tag ? formats.languages.of(tag) : ''
  } catch {
    return tag
  }
}

// duration writes a number of minutes, hours or days.
export const duration = (n, unit) => new Intl.NumberFormat(locale, {style: 'unit', unit, unitDisplay: 'long'}).format(n)

// speedText writes bytes per second.
export const speedText = n => scaled(n, '-per-second')

// speed returns a node. In right-to-left text, the words for "per second" come after a size in Latin letters.
export function speed(n) {
  const shown = speedText(n)
  const [, size, rest] = document.documentElement.dir === 'rtl' && shown.match(/^(.*\p{Script=Latin})(.*\p{L}.*)$/u) || []
  if (!rest) return isolated(shown)
  const node = isolated(isolated(size), rest)
  node.dir = 'rtl'
  return node
}

// scaled writes a number of bytes in the largest binary unit that it has one of, rounded as in replies. Intl has
// decimal units only, so their names are replaced by the names of the binary ones.
function scaled(n, per) {
  const units = ['byte', 'kilobyte', 'megabyte', 'gigabyte', 'terabyte', 'petabyte']
  let i = 0
  for (; n >= 1024 && i < units.length - 1; i++) n /= 1024
  const format = (unit, unitDisplay) => {
    const key = `${unit} ${unitDisplay} ${i > 0}`
    if (!formats.units.has(key)) {
      formats.units.set(key, new Intl.NumberFormat(locale, {style: 'unit', unit, unitDisplay, maximumFractionDigits: i > 0 ? 1 : 0, roundingMode: 'halfEven'}))
    }
    return formats.units.get(key)
  }
  if (i === 0) return format(units[i] + per, per ? 'short' : 'long').format(n)
  const name = format(units[i], 'short').formatToParts(n).find(part => part.type === 'unit').value
  return format(units[i] + per, 'short').format(n).replace(name, shared('size-units').split(' ')[i - 1])
}

// time formats the time of day, with the date unless it is today.
export function time(date) {
  const today = new Date().toDateString() === date.toDateString()
  return (today ? formats.second : formats.dayAndTime).format(date)
}

// minute formats the time of day without seconds.
export const minute = date => formats.minute.format(date)

// day formats a date such as 2026-12-31.
export const day = date => formats.day.format(date)

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

// path returns a pathname from a client or the server. It is read from left to right, so that /ملف begins with
// its slash in every language.
export function path(value) {
  const node = visible(value)
  if (value.startsWith('/')) node.dir = 'ltr'
  return node
}
