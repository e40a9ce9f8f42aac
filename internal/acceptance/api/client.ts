// Manages users with the client that openapi-fetch makes of the types in api.d.ts, which openapi-typescript generates
// from the OpenAPI document. The user `NAME@acme` remains.
//
//   node client.js URL ADMINISTRATOR PASSWORD NAME
import createClient from 'openapi-fetch'
import type {components, paths} from './api.js'

type User = components['schemas']['User']
declare const process: {argv: string[]}

const [url = '', administrator = '', password = '', name = ''] = process.argv.slice(2)
const api = createClient<paths>({
  baseUrl: url + '/api/v1',
  headers: {Authorization: 'Basic ' + btoa(administrator + ':' + password)},
})

function expect(what: string, got: unknown, want: unknown) {
  if (JSON.stringify(got) !== JSON.stringify(want)) {
    throw new Error(`${what}: got ${JSON.stringify(got)}, want ${JSON.stringify(want)}`)
  }
}

const me = await api.GET('/me')
expect('login', [me.data?.name, me.data?.role, me.data?.login], [administrator, 'administrator', 'password'])
const sessions = await api.GET('/sessions')
expect('users of sessions', sessions.data?.map(session => session.user + '@' + session.tenant), ['alice@acme'])

// Add a user. Wrong fields are named.
const wrong = await api.POST('/users', {body: {tenant: 'acme', name, password: 'short', settings: {quota: '1GiB'}}})
expect('status of a short password', wrong.response.status, 422)
expect('wrong field', wrong.error?.fields?.map(field => field.path), ['password'])
const added = await api.POST('/users', {
  body: {tenant: 'acme', name, password, settings: {root: '/in', permissions: ['list', 'read'], limits: {sessions: 2}}},
})
expect('status of a new user', added.response.status, 201)
const again = await api.POST('/users', {body: {tenant: 'acme', name, password}})
expect('status of a second one', again.response.status, 409)

// Read the user, change it, and change it again with the old ETag.
const params = {path: {tenant: 'acme', name}}
const read = await api.GET('/users/{tenant}/{name}', {params})
const etag = read.response.headers.get('ETag') ?? ''
const user: User | undefined = read.data
expect('settings', user?.settings, {limits: {sessions: 2}, permissions: ['list', 'read'], root: '/in'})
const change = (tag: string, quota: string | null) => api.PATCH('/users/{tenant}/{name}', {
  params: {...params, header: {'If-Match': tag}}, body: {settings: {quota, limits: {sessions: null}}},
  headers: {'Content-Type': 'application/merge-patch+json'},
})
const changed = await change(etag, '1GiB')
expect('changed settings', changed.data?.settings, {permissions: ['list', 'read'], quota: '1GiB', root: '/in'})
expect('status of a conflict', (await change(etag, null)).response.status, 412)
expect('status with the new ETag', (await change(changed.response.headers.get('ETag') ?? '', null)).response.status, 200)

// List users page by page, and remove one.
await api.POST('/users', {body: {tenant: 'acme', name: 'other', settings: {disabled: true}}})
const names: string[] = []
for (let after: string | undefined; ;) {
  const page = await api.GET('/users', {params: {query: {tenant: 'acme', limit: 1, after}}})
  names.push(...page.data?.users.map(user => user.name) ?? [])
  after = page.data?.next
  if (after === undefined) break
}
expect('users', names.sort(), ['alice', 'other', name].sort())
const other = {params: {path: {tenant: 'acme', name: 'other'}, header: {'If-Match': '*'}}}
expect('status of a removal', (await api.DELETE('/users/{tenant}/{name}', other)).response.status, 204)
expect('status of a second one', (await api.DELETE('/users/{tenant}/{name}', other)).response.status, 404)
console.log('done')
