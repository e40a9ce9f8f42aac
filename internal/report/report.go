// Package report notifies observers of everything that happens in a session. An [Observer] learns when the session,
// its commands and transfers begin and end, and what limits refuse.
//
// Each command ends with one [Outcome]. The log (package sessionlog), the audit log (package audit), the metrics
// (package admin) and the traces (package tracing) are observers. They all read the same Outcome, and derive nothing
// themselves.
//
// An [Activity] shows administrators the current state of a session. It reads the number of transferred bytes only on
// request, so that it does not slow down transfers.
//
// [Escape] prevents text from clients from affecting the terminal that displays a log.
package report

import (
	"net/netip"

	"golang.org/x/text/language"
)

// A Client describes the client of a session, as far as the server knows.
type Client struct {
	ID           string // session ID, the same in all logs
	Remote       string // address and port
	Address      netip.Addr
	Tenant, User string // empty until known; HOST and TLS may select the tenant, and a login sets both
	Language     language.Tag
	Software     string // name that the client sent with CLNT, shortened; otherwise empty
	TLS          bool   // on the control connection
	// TLSVersion and TLSCipher describe the control connection, such as "TLS 1.3" and "TLS_AES_128_GCM_SHA256". They
	// are empty without TLS.
	TLSVersion, TLSCipher string
}

// A Kind is the effect of a command, as the audit log names it. It is empty for a command that neither changes nor
// transfers a file, and does not change the password.
type Kind string

// Kinds of commands.
const (
	Upload    Kind = "upload"
	Download  Kind = "download"
	Delete    Kind = "delete"
	Rename    Kind = "rename"
	MakeDir   Kind = "mkdir"
	RemoveDir Kind = "rmdir"
	Copy      Kind = "copy"
	Restore   Kind = "restore" // a rename or copy of an older version
	SetTime   Kind = "set_time"
	Presign   Kind = "presign"

	SetPassword Kind = "password" // the user changed the password
)
