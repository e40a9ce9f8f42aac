// Graphs of the last hour, drawn by uPlot. Each has a sentence and a table for readers who do not see it.

import {h, set, setNodes} from './dom.js'
import {filled, minute, time} from './format.js'

const height = 140
const rowsOfTable = 12

const css = name => getComputedStyle(document.documentElement).getPropertyValue(name).trim()
const dark = matchMedia('(prefers-color-scheme: dark)')

// Steps of an axis of bytes are powers of two, so that its labels are round numbers of KiB or MiB.
const powers = Array.from({length: 50}, (_, i) => 2 ** i)

// labelWidth returns the width of the widest label of an axis, because words for units have any length.
function labelWidth(plot, labels) {
  plot.ctx.save()
  plot.ctx.font = plot.axes[1].font[0]
  const width = Math.max(30, ...labels.map(label => plot.ctx.measureText(label ?? '').width / devicePixelRatio))
  plot.ctx.restore()
  return Math.ceil(width) + 14
}

// A Chart shows series of the last hour: {name, color, format, node}. name is the name of a text, format writes a
// value for the axis, and node makes a node of it.
export class Chart {
  constructor(title, series, {binary, level = 'h2'} = {}) {
    Object.assign(this, {series, binary})
    const id = `chart-${title}`
    this.values = series.map(() => h('strong'))
    this.legend = h('div', {class: 'legend'}, ...series.map(({name, color}, i) =>
      h('span', {}, h('i', {class: `key ${color}`}), h('span', {text: name}), ' ', this.values[i])))
    this.when = h('span', {class: 'count'})
    this.plot = h('div', {class: 'plot', dir: 'ltr', 'aria-hidden': 'true'})
    this.summary = h('p', {class: 'unseen'})
    this.body = h('tbody')
    this.details = h('details', {}, h('summary', {text: 'as-table'}),
      h('table', {class: 'small'}, h('thead', {}, h('tr', {}, h('th', {scope: 'col', text: 'time'}), ...series.map(({name}) => h('th', {scope: 'col', text: name})))), this.body))
    this.details.addEventListener('toggle', () => this.fillTable())
    this.node = h('div', {class: 'panel chart', role: 'group', 'aria-labelledby': id},
      h('div', {class: 'heading'}, h(level, {id, text: title}), this.when), this.legend, this.plot, this.summary, this.details)
    new ResizeObserver(() => this.uplot?.setSize({width: this.plot.clientWidth, height})).observe(this.plot)
    dark.addEventListener('change', () => this.redraw())
  }

  // update shows the values that end at a time. times has the seconds of the values.
  update(times, values) {
    this.data = [times, ...values]
    if (this.uplot) this.uplot.setData(this.data)
    else this.redraw()
    this.label()
    this.fillTable()
  }

  redraw() {
    if (!this.data || !this.plot.clientWidth) return
    this.uplot?.destroy()
    const axis = {stroke: css('--quiet'), grid: {stroke: css('--line'), width: 1}, ticks: {show: false}, font: `12px ${getComputedStyle(document.body).fontFamily}`}
    this.uplot = new window.uPlot({
      width: this.plot.clientWidth, height, legend: {show: false}, padding: [8, 8, 0, 0],
      cursor: {y: false, drag: {x: false, y: false}, points: {size: 6}},
      hooks: {setCursor: [() => this.label()]},
      scales: {y: {range: (_, low, high) => [0, Math.max(high * 1.1, this.binary ? 1024 : 4)]}},
      axes: [
        {...axis, values: (_, splits) => splits.map(at => minute(new Date(at * 1000))), space: 70, size: 28},
        {...axis, size: (plot, labels) => labelWidth(plot, labels ?? []), space: 34, incrs: this.binary ? powers : undefined, values: (_, splits) => splits.map(value => this.series[0].format(value))},
      ],
      series: [{}, ...this.series.map(({color}) => ({stroke: css(`--${color}`), width: 2, fill: css(`--${color}-fill`), points: {show: false}}))],
    }, this.data, this.plot)
  }

  // label shows the values at the cursor, or the latest ones.
  label() {
    const [times, ...values] = this.data
    const at = this.uplot?.cursor.idx ?? times.length - 1
    for (const [i, {node}] of this.series.entries()) setNodes(this.values[i], node(values[i][at] ?? 0))
    set(this.when, at < times.length - 1 ? time(new Date(times[at] * 1000)) : '')
    const sentences = this.series.flatMap(({name, node}, i) => [h('span', {text: name}), ': ',
      ...filled('chart-summary', {Now: node(values[i].at(-1) ?? 0), Highest: node(Math.max(0, ...values[i]))}), '. '])
    setNodes(this.summary, ...sentences)
  }

  // fillTable fills the table with averages of five minutes, latest first, if it is open.
  fillTable() {
    if (!this.details.open || !this.data) return
    const [times, ...values] = this.data
    const size = Math.ceil(times.length / rowsOfTable)
    const rows = []
    for (let end = times.length; end > 0; end -= size) {
      const mean = list => list.slice(Math.max(0, end - size), end).reduce((sum, value) => sum + (value ?? 0), 0) / Math.min(size, end)
      rows.push(h('tr', {}, h('th', {scope: 'row'}, minute(new Date(times[end - 1] * 1000))),
        ...this.series.map(({node}, i) => h('td', {}, node(Math.round(mean(values[i]) * 10) / 10)))))
    }
    this.body.replaceChildren(...rows)
  }

  translate() {
    if (!this.data) return
    this.uplot?.redraw()
    this.label()
    this.fillTable()
  }
}

