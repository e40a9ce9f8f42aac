package config

import (
	"time"

	"github.com/babelftp/babelftp/internal/config/value"
	"github.com/babelftp/babelftp/internal/config/yamlconf"
)

// Audit is where the audit log goes: a line of JSON for each login, change and transfer.
type Audit struct {
	// File to which lines are added, or `-` for standard output. Move it away to rotate it.
	File string `yaml:"file" path:"true" default:"none"`
	// Webhook that gets the lines.
	Webhook Receiver `yaml:"webhook"`
	// Refuse logins, transfers and changes while a destination takes no lines.
	Required bool `yaml:"required"`
}

// Stdout reports whether the lines go to standard output.
func (a *Audit) Stdout() bool { return a.File == yamlconf.StandardOutput }

// check reports what is wrong with the section that p leads to.
func (a *Audit) check(v *validator, p yamlconf.Path) {
	a.Webhook.check(v, p.Child("webhook"))
	if a.Required && a.File == "" && a.Webhook.URL == "" {
		v.report(p.Child("required"), "needs a place for the lines: write audit.file or webhook")
	}
}

// Receiver is the webhook receiver of the audit log: an HTTP service to which lines are posted as JSON.
type Receiver struct {
	// URL that gets a JSON array by POST, `https://` or `http://`.
	URL string `yaml:"url" default:"none"`
	// Key of the signatures, 16 bytes or more.
	Secret value.Secret `yaml:"secret" default:"required with url"`
	// CAFile has authorities to trust in addition to those of the system. It is no key: it is that of the tenant or
	// server.
	CAFile string
}

// Webhook is where events are posted about the files that users of a tenant store, delete, rename or copy.
type Webhook struct {
	Receiver
	// Temporary names without events, by pattern, such as `*.part`. A rename to another name is an upload.
	Skip []string `yaml:"skip" default:"none"`
}

// minReceiverSecret is the shortest key, in bytes.
const minReceiverSecret = 16

// ReceiverTimeout is how long a receiver may take to answer.
const ReceiverTimeout = 10 * time.Second

// check reports what is wrong with the section that p leads to.
func (w *Webhook) check(v *validator, p yamlconf.Path) {
	w.Receiver.check(v, p)
	if w.URL == "" && w.Secret.Empty() && len(w.Skip) > 0 {
		v.report(p.Child("url"), "is missing: write the address of the receiver")
	}
	v.fileNames(p.Child("skip"), w.Skip)
}

// trust gives the receiver authorities to trust.
func (r *Receiver) trust(file string) {
	if r.URL != "" {
		r.CAFile = file
	}
}

// check reports what is wrong with the section that p leads to.
func (r *Receiver) check(v *validator, p yamlconf.Path) {
	if r.URL == "" {
		if !r.Secret.Empty() {
			v.report(p.Child("url"), "is missing: write the address of the receiver")
		}
		return
	}
	if !isURL(r.URL, "http", "https") { // not shown: it may hold a password
		v.report(p.Child("url"), "is not the URL of a webhook receiver: write it like https://hooks.example.com/babelftp, "+
			"without credentials")
	}
	if len(r.Secret.Reveal()) < minReceiverSecret {
		v.report(p.Child("secret"),
			"is shorter than 16 bytes: write a random one, like that of `openssl rand -hex 32`")
	}
}
