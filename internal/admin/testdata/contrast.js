// Checks the contrast that WCAG 2.2 requires (1.4.3 and 1.4.11). Returns a list of the texts and controls
// that have too little.
(() => {
  const parse = colour => colour.match(/[\d.]+/g).map(Number)
  const luminance = ([r, g, b]) => [r, g, b].map(v => v / 255).map(v => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
    .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0)
  const ratio = (a, b) => {
    const [dark, light] = [luminance(a), luminance(b)].sort((x, y) => x - y)
    return (light + 0.05) / (dark + 0.05)
  }
  const ground = element => {
    for (let e = element; e; e = e.parentElement) {
      const colour = parse(getComputedStyle(e).backgroundColor)
      if (colour.length === 3 || colour[3] === 1) return colour
    }
    return [255, 255, 255]
  }
  const problems = []
  const check = (element, what, a, b, least) => {
    const r = ratio(a, b)
    if (r < least) problems.push(`${what} of ${element.outerHTML.slice(0, 80)}: contrast ${r.toFixed(2)}, want ${least}`)
  }
  const visible = element => element.checkVisibility({visibilityProperty: true, opacityProperty: true})
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT)
  while (texts.nextNode()) {
    const element = texts.currentNode.parentElement
    if (!texts.currentNode.data.trim() || !visible(element)) continue
    check(element, 'text', parse(getComputedStyle(element).color), ground(element), 4.5)
  }
  for (const element of document.querySelectorAll('button, input, select')) {
    if (visible(element) && getComputedStyle(element).borderTopWidth !== '0px') check(element, 'border', parse(getComputedStyle(element).borderTopColor), ground(element.parentElement), 3)
  }
  return problems
})()
