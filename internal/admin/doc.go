// Package admin lets administrators watch and control a running server: over HTTP with JSON, and by server-sent events.
//
// [Handler] answers what is below /api/v1 from a [Source], and a [Client] asks. [Listen] opens a Unix socket for the
// user of the process only, whose permissions are the only authentication. A [Listener] serves the same over TCP, to
// those who have a password or a certificate.
//
// Anybody who reaches the address of a listener may read its page and the files of it. What is below [Root] needs a
// login:
//
//   - Basic authentication, for scripts (RFC 7617).
//   - A cookie, for browsers. POST /login exchanges the form fields "user" and "password" for it, with status 204, and
//     401 for wrong ones. POST /logout removes the cookie. A server that was given a token, as the demo is, also
//     exchanges it for a cookie, once: GET /login?token=TOKEN.
//   - A certificate of tls.client_ca_file. Its subject names the administrator.
//
// Requests that other sites make browsers send are refused. So are those for a name that is not this machine's, where
// there is no TLS (DNS rebinding).
//
// The page is one file of HTML, which asks the API. It needs no build step and nothing from another server. Its texts
// come from the catalogues of package i18n. Their language is the one that the reader chooses, else one that the
// browser asks for (Accept-Language, RFC 9110, section 12.5.4). Languages that lack texts of the page are not offered.
// Reasons and errors come from the server in English, and say so (WCAG 3.1.2). Nothing in the page is secret: the API
// wants a login. The HTML has no script and no style in it, so that a content security policy can forbid them.
//
// An [Overview] collects from the parts of a server what administrators see of it, and does what they ask for. A
// [Probe] answers the probes of Kubernetes: /healthz and /readyz.
//
// [Metrics] show Prometheus what a server does: what its sessions do, and what other packages count of memory, uploads,
// buckets and more.
package admin
