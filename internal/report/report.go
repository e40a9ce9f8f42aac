// Package report lets observers know what happens in a session. Each [Observer] learns of the begin and the end, of
// commands and transfers, and of what a limit refuses, each thing once.
//
// A command ends in one [Outcome]. The log, the audit log, the metrics and the traces read that, and derive nothing
// themselves. An [Activity] tells administrators what a session does at the moment: the bytes of a transfer are read
// when one asks, so that moving them costs nothing.
//
// [Escape] keeps what a client has sent from having an effect on the terminal that shows a line.
package report

import (
	"net/netip"

	"golang.org/x/text/language"
)

// A Client is what is known of the client of a session.
type Client struct {
	ID           string // of the session, the same in all logs
	Remote       string // its address and port
	Address      netip.Addr
	Tenant, User string // empty where they are not known; HOST and TLS tell the tenant, and a login both
	Language     language.Tag
	Software     string // what the client calls itself by CLNT, shortened; empty if it does not
	TLS          bool   // on the control connection
	// TLSVersion and TLSCipher are those of the control connection, empty in the clear: "TLS 1.3",
	// "TLS_AES_128_GCM_SHA256".
	TLSVersion, TLSCipher string
}

// A Kind is what a command does, in the word of the audit log. It is empty for a command that changes nothing and
// sends no file.
type Kind string

// The kinds of commands.
const (
	Upload    Kind = "upload"
	Download  Kind = "download"
	Delete    Kind = "delete"
	Rename    Kind = "rename"
	MakeDir   Kind = "mkdir"
	RemoveDir Kind = "rmdir"
	Copy      Kind = "copy"
	Restore   Kind = "restore" // a rename or a copy from the past
	SetTime   Kind = "set_time"
	Presign   Kind = "presign"
)
