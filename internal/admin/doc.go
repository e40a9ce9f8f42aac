// Package admin lets administrators watch and control a running server, over HTTP with JSON and server-sent
// events.
//
// A [Handler] implements the API below [Root] on top of a [Source], and a [Client] calls it. There are two
// ways in:
//
//   - [Listen] opens a Unix socket that only the user of the process may connect to. File permissions are the only
//     authentication.
//   - A [Listener] serves the same API over TCP to administrators with a password or a client certificate.
//
// Everybody who reaches the address of a listener may read the page and its static files, which contain no
// secrets. Requests below [Root] need one of these logins:
//
//   - Basic authentication (RFC 7617), for scripts.
//   - A cookie, for browsers. POST /login exchanges the form fields "user" and "password" for it and responds with 204,
//     or with 401 if they are wrong. POST /logout removes the cookie. A server that was started with a token, such as
//     the demo, also exchanges the token for a cookie, once: GET /login?token=TOKEN.
//   - A cookie that a browser gets after a login at an OpenID Connect provider. GET /login/oidc sends the browser
//     there, and the provider sends it back to GET /login/oidc/callback. A failed login ends at
//     /?login_error=CODE. Package oidc speaks with the provider, which is asked again every few minutes whether the
//     login is valid. GET /login/options returns the ways to log in.
//   - A client certificate issued by tls.client_ca_file. Its subject names the administrator.
//
// Cross-site requests are rejected. Without TLS, so are requests for any host name other than localhost,
// because they may be the result of DNS rebinding.
//
// A request to a listener passes the gate, which authenticates it and adds the [Identity] of the administrator to its
// context, with a [Role] that each route compares with its own. The Handler then reads from the Source or changes
// something. Changes are written to the log and the audit log.
//
// The page is a single HTML file with static scripts that call the API. It needs no build step and loads
// nothing from other servers. Its texts come from the catalogs of package i18n, in the language that the
// reader has chosen or, failing that, the best match for Accept-Language (RFC 9110, section 12.5.4). Only
// languages with all texts of the page are offered. Reasons and errors come from the server in English and
// are marked as such (WCAG 3.1.2). The HTML contains no inline script or style, so that the content security
// policy can forbid both.
//
// An [Overview] is the Source of a real server: it collects the state of the server's parts and passes
// changes on to them. A [Probe] serves /healthz and /readyz for Kubernetes. [Metrics] exports Prometheus
// metrics about sessions, and about memory, uploads, buckets and other parts of the server.
package admin
