// Package server runs babelftp with a configuration: it opens the listeners, serves the certificates, checks the
// buckets, removes abandoned uploads, counts quotas, and serves /metrics, /healthz and /readyz. Package account
// authenticates users, and package control speaks FTP.
//
// A [Server] has the same life cycle as one of net/http, plus reloads:
//
//	srv, err := server.New(ctx, cfg, server.Options{Logger: log})
//	err = srv.Start(ctx)    // opens the listeners
//	go srv.Serve(ctx)       // runs sessions until Shutdown
//	err = srv.Reload(server.ReloadFiles, load)
//	err = srv.Shutdown(ctx) // drains running transfers
//
// A reload first prepares the new configuration (prepare), which may fail without any effect, and then applies it
// (apply), which cannot fail. [New] applies the first configuration in the same way.
package server
