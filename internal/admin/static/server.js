// The screen Server: replicas, tenants, certificates and the configuration in effect.

import {errorText, get} from './api.js'
import {h, set, setBadge, setForeign, setNodes, setTime} from './dom.js'
import {bytes, isolated, number, of, text, time, visible} from './format.js'
import {setPart} from './now.js'
import {Table} from './table.js'

const refreshEvery = 10_000
const soon = 14 * 24 * 3_600_000 // milliseconds before the end of a certificate

function quota(cell, {quota}) {
  if (!quota) return setPart(cell, 0, 0, text('no-quota'))
  const used = quota.bytes ?? 0
  setPart(cell, used, quota.max_bytes, isolated(...of(quota.bytes === null ? '–' : bytes(used), bytes(quota.max_bytes))))
}

// storage shows whether the buckets of a tenant and its folders can be used, and if not, why.
function storage(cell, tenant) {
  const down = [tenant, ...tenant.folders ?? []].filter(bucket => bucket.bucket_up === false)
  const reasons = down.map(({folder, reason}) => [folder, reason].filter(part => part).join(': '))
  if (down.length > 0) setNodes(cell, h('span', {class: 'badge bad'}, text('unreachable')), ' ', visible(reasons.join(' – '), 'en'))
  else if (tenant.bucket_up === null) set(cell, '–')
  else setBadge(cell, 'good', text('reachable'))
}

// readiness returns the badge of a server.
const readiness = server => server.draining ? ['warn', text('shutting-down')] : server.ready ? ['good', text('ready')] : ['bad', text('not-ready')]

// create returns the screen.
export function create() {
  const replicas = new Table({
    id: 'replicas', key: r => r.replica, subject: ['replica'],
    columns: {
      replica: (cell, r) => set(cell, number(r.replica)),
      state: (cell, r) => r.up ? setBadge(cell, ...readiness(r.server))
        : setNodes(cell, h('span', {class: 'badge bad'}, text('problem-replica')), ' ', visible(r.reason ?? '', 'en')),
      version: (cell, r) => setForeign(cell, r.version), sessions: (cell, r) => set(cell, r.up ? number(r.totals.sessions) : '–'),
      transfers: (cell, r) => set(cell, r.up ? number(r.totals.transfers) : '–'),
      started: (cell, r) => setTime(cell, r.server?.started, time),
      configuration: (cell, r) => setForeign(cell, r.server?.config_hash?.slice(0, 12)),
      loaded: (cell, r) => setTime(cell, r.server?.reloaded, time),
    },
  })
  const tenants = new Table({
    id: 'tenants', key: t => t.name, subject: ['tenant'],
    columns: {
      tenant: (cell, t) => setForeign(cell, t.name), bucket: (cell, t) => setForeign(cell, t.prefix ? `${t.bucket}/${t.prefix}` : t.bucket),
      storage, sessions: (cell, t) => set(cell, number(t.sessions)), quota,
    },
  })
  const certificates = new Table({
    id: 'certificates', key: c => `${c.tenant} ${c.names} ${c.not_after}`, subject: ['names'],
    columns: {
      names: (cell, c) => setForeign(cell, c.names.join(' ')), tenant: (cell, c) => setForeign(cell, c.tenant),
      'valid-until': (cell, c) => {
        const left = new Date(c.not_after) - new Date()
        const at = h('time', {datetime: c.not_after}, time(new Date(c.not_after)))
        if (left > soon) setNodes(cell, at)
        else setNodes(cell, h('span', {class: `badge ${left < 0 ? 'bad' : 'warn'}`}, text(left < 0 ? 'expired' : 'problem-certificate')), ' ', at)
      },
    },
  })
  const configuration = h('pre', {class: 'code', dir: 'ltr', tabindex: 0, 'aria-labelledby': 'configuration-heading', role: 'region'})
  const section = h('section', {class: 'panel'},
    h('div', {class: 'heading'}, h('h2', {id: 'configuration-heading', text: 'configuration-in-effect'})), configuration)

  async function loadConfiguration() {
    try {
      configuration.textContent = (await get('configuration')).text
    } catch (error) {
      configuration.replaceChildren(...errorText(error))
    }
  }
  const load = async () => replicas.update(await get('replicas').catch(() => replicas.items))

  let timer, hash
  const byState = (a, b) => (a.bucket_up === false ? 0 : 1) - (b.bucket_up === false ? 0 : 1) || (a.name < b.name ? -1 : 1)
  return {
    node: h('div', {}, replicas.node, tenants.node, certificates.node, section),
    show() {
      clearInterval(timer)
      timer = setInterval(load, refreshEvery)
      load()
      loadConfiguration()
    },
    hide: () => clearInterval(timer),
    state(state) {
      tenants.update(state.tenants.sort(byState), state.totals.tenants)
      certificates.update(state.server.certificates.sort((a, b) => a.not_after < b.not_after ? -1 : 1))
      if (hash && hash !== state.server.config_hash && section.checkVisibility()) loadConfiguration()
      hash = state.server.config_hash
    },
    translate: () => replicas.update(replicas.items),
  }
}
