// An OpenID Connect provider with a login form that accepts any password.
// usage: node provider.mjs NODE_MODULES REDIRECT_URI GROUPS.json
// The file maps names to groups, and is read for each login and each refresh. The first line of the output is the issuer.
import { readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'

const [modules, redirect, groups] = process.argv.slice(2)
const { default: Provider } = await import(pathToFileURL(join(modules, 'oidc-provider/lib/index.js')))

const server = createServer().listen(0, '127.0.0.1', () => {
  const issuer = `http://127.0.0.1:${server.address().port}`
  const provider = new Provider(issuer, {
    clients: [{
      client_id: 'babelftp', client_secret: 'a secret: with / and %', redirect_uris: [redirect],
      grant_types: ['authorization_code', 'refresh_token'],
    }],
    scopes: ['openid', 'profile', 'groups', 'offline_access'],
    claims: { openid: ['sub'], profile: ['preferred_username'], groups: ['groups'] },
    pkce: { methods: ['S256'], required: () => true },
    issueRefreshToken: () => true,
    rotateRefreshToken: true,
    findAccount: (_, id) => ({
      accountId: id,
      claims: () => ({ sub: id, preferred_username: id, groups: JSON.parse(readFileSync(groups))[id] ?? [] }),
    }),
    cookies: { keys: ['a key of the tests'] },
  })
  server.on('request', provider.callback())
  console.log(issuer)
})
process.stdin.resume().on('end', () => process.exit()) // when the test ends
