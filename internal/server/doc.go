// Package server runs babelftp as a configuration says: it opens the listeners, shows the certificates, checks the
// buckets, removes abandoned uploads, counts quotas, and answers /metrics, /healthz and /readyz. Package account knows
// the users, and package control speaks FTP.
//
// A Server goes through [New], Start, Serve and Shutdown, like one of net/http. [Server.Reload] gives it another
// configuration meanwhile.
package server
