package config

import (
	"time"

	"github.com/babelftp/babelftp/internal/config/value"
	"github.com/babelftp/babelftp/internal/config/yamlconf"
)

// Audit configures the audit log, which has a line of JSON for each login, change and transfer.
type Audit struct {
	// File to append to, or `-` for standard output. To rotate the file, rename it.
	File string `yaml:"file" path:"true" default:"none"`
	// Webhook that receives the lines.
	Webhook Receiver `yaml:"webhook"`
	// Refuse logins, transfers and changes while the audit log cannot be written.
	Required bool `yaml:"required"`
}

// Stdout reports whether the audit log is written to standard output.
func (a *Audit) Stdout() bool { return a.File == yamlconf.StandardOutput }

// check validates the section at p.
func (a *Audit) check(v *validator, p yamlconf.Path) {
	a.Webhook.check(v, p.Child("webhook"))
	if a.Required && a.File == "" && a.Webhook.URL == "" {
		v.report(p.Child("required"), "requires audit.file or audit.webhook")
	}
}

// Receiver is an HTTP service that receives JSON.
type Receiver struct {
	// URL of the service, `https://` or `http://`. It receives a JSON array as a POST request.
	URL string `yaml:"url" default:"none"`
	// Key for signing requests, at least 16 bytes.
	Secret value.Secret `yaml:"secret" default:"required with url"`
	// CAFile has additional CA certificates to trust. It is not a key; it is set from ca_file of the tenant or the
	// server.
	CAFile string
}

// Webhook receives events about files that users of a tenant store, delete, rename or copy.
type Webhook struct {
	Receiver
	// Patterns of temporary file names that cause no events, such as `*.part`. Renaming such a file to another name
	// counts as an upload.
	Skip []string `yaml:"skip" default:"none"`
}

// minReceiverSecret is the minimum length of a key in bytes.
const minReceiverSecret = 16

// ReceiverTimeout limits the time that a receiver may take to respond.
const ReceiverTimeout = 10 * time.Second

// check validates the section at p.
func (w *Webhook) check(v *validator, p yamlconf.Path) {
	w.Receiver.check(v, p)
	if w.URL == "" && w.Secret.Empty() && len(w.Skip) > 0 {
		v.report(p.Child("url"), "is missing: write the address of the receiver")
	}
	v.fileNames(p.Child("skip"), w.Skip)
}

// trust sets the CA file.
func (r *Receiver) trust(file string) {
	if r.URL != "" {
		r.CAFile = file
	}
}

// check validates the section at p.
func (r *Receiver) check(v *validator, p yamlconf.Path) {
	if r.URL == "" {
		if !r.Secret.Empty() {
			v.report(p.Child("url"), "is missing: write the address of the receiver")
		}
		return
	}
	if !isURL(r.URL, "http", "https") { // not shown, because it may contain a password
		v.report(p.Child("url"), "is not the URL of a webhook receiver: write it like https://hooks.example.com/babelftp, "+
			"without credentials")
	}
	if len(r.Secret.Reveal()) < minReceiverSecret {
		v.report(p.Child("secret"),
			"is shorter than 16 bytes: write a random one, for example from `openssl rand -hex 32`")
	}
}
