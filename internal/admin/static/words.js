// Words of the server: events, outcomes, limits, reasons of bans and kinds of problems. A word without a text, for
// example from a newer server, is shown as it is.

import {isolated, text, visible} from './format.js'

export const events = {
  login: 'event-login', logout: 'event-logout', refused: 'event-refused', upload: 'upload', download: 'download',
  delete: 'event-delete', rename: 'event-rename', mkdir: 'event-mkdir', rmdir: 'event-rmdir', copy: 'event-copy',
  set_time: 'event-set-time', presign: 'event-presign', password: 'event-password', admin_login: 'event-admin-login', admin_logout: 'log-out',
  ban: 'event-ban', unban: 'unban', disconnect: 'disconnect', abort_upload: 'event-abort-upload', debug: 'event-debug',
  debug_off: 'event-debug-off', reload: 'event-reload', user_add: 'event-user-add', user_change: 'event-user-change',
  user_delete: 'event-user-delete',
}
export const outcomes = {ok: 'outcome-ok', failed: 'outcome-failed', refused: 'outcome-refused'}
export const banReasons = {
  'an administrator': 'reason-administrator', 'failed logins': 'reason-logins',
  'unknown commands or refused connections': 'reason-offences',
}
export const directions = {upload: 'upload', download: 'download', listing: 'listing'}
export const kinds = {
  replica: 'problem-replica', audit: 'audit', state: 'problem-state', bucket: 'unreachable', configuration: 'configuration', user: 'user',
  certificate: 'problem-certificate', quota: 'quota', finding: 'problem-client', ban: 'event-ban',
}
export const roles = {viewer: 'role-viewer', operator: 'role-operator', administrator: 'role-administrator'}
const scopes = {server: 'server', address: 'address', tenant: 'tenant', user: 'user'}
const limits = {
  sessions: 'sessions', transfers: 'transfers', operations: 'limit-operations', 'passive.ports': 'limit-passive-ports',
  login_rate: 'limit-login-rate', command_rate: 'limit-command-rate', sessions_before_login: 'limit-before-login',
  login_timeout: 'limit-login-timeout', bans: 'bans', deny: 'limit-deny', 'user.disabled': 'limit-user-disabled',
  'user.expired': 'limit-user-expired', descriptors: 'limit-descriptors',
}

// word returns a word of the server in the language of the page, as a node or a string.
export const word = (words, value) => Object.hasOwn(words, value) ? text(words[value]) : visible(value || '–', 'en')

// limitWords returns a description of a limit and its key in the configuration.
export function limitWords(key) {
  const [scope, of] = key.split('.')
  const named = [' (', isolated(key), ')']
  if (Object.hasOwn(limits, key)) return [text(limits[key]), ...named]
  if (Object.hasOwn(scopes, scope) && Object.hasOwn(limits, of)) return [`${text(scopes[scope])} – ${text(limits[of])}`, ...named]
  return [visible(key, 'en')]
}

// problemWords returns the heading of a problem.
export const problemWords = ({kind, severity}) =>
  kind === 'configuration' && severity === 'error' ? text('problem-reload') : word(kinds, kind)
