// Package server puts babelftp together from a configuration: it reaches the tenants' buckets, knows their users and what each may
// do, opens the listeners, and tells how it is on /metrics, /healthz and /readyz.
//
// A Server goes through [New], Start, Serve and Shutdown, like one of net/http.
package server
