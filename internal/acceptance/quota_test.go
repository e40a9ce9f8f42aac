package acceptance_test

import (
	"bytes"
	"fmt"
	"net"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/babelftp/babelftp/internal/testkit/ftptest"
	"github.com/babelftp/babelftp/internal/testkit/must"
)

// quotaCases are histories of the sessions of some users. Each user logs in with the first step that names the user,
// and stays logged in. Steps are:
//
//	config LINES         reload with these lines of acme's users, and of further tenants
//	restart              kill the server and start another one
//	put KEY BYTES        store an object by S3, below the prefix of acme
//	USER NAME BYTES      store a file
//	USER NAME BYTES no   store a file, and be refused
//	USER begin NAME BYTES    send a file, but do not end it yet
//	USER end, USER end no    end it, and be refused
//	USER delete NAME     delete a file
//	USER rename NAME NAME
//	USER quota TEXT      read the usage when it is known
var quotaCases = []struct {
	name  string
	steps []string
}{
	{"added", []string{
		"put bob/old 300", "config bob: {root: /bob}", "bob a 400", "bob quota No quota is set.",
		"config bob: {root: /bob, quota: 1000}",
		"bob quota Space used: 700 bytes of 1000 bytes", "bob b 301 no", "bob b 300", "bob c 1 no", "bob a 400", "bob delete b", "bob c 300",
	}},
	{"added-to-the-tenant", []string{
		"config bob: {root: /bob}", "bob a 700", "alice x 100",
		"config bob: {root: /bob}\n    quota: 1000", "bob b 201 no", "alice y 200", "bob b 1 no", "alice z 1 no",
	}},
	{"removed", []string{
		"config bob: {root: /bob, quota: 1000}", "bob a 1000", "bob b 1 no",
		"config bob: {root: /bob}", "bob b 5000", "bob quota No quota is set.",
		"config bob: {root: /bob, quota: 6001}", "bob c 2 no", "bob c 1",
	}},
	{"changed", []string{
		"config bob: {root: /bob, quota: 1000}", "bob a 1000", "bob b 1 no",
		"config bob: {root: /bob, quota: 1500}", "bob b 500", "bob c 1 no",
		"config bob: {root: /bob, quota: 100}", "bob c 1 no", "bob delete a", "bob c 1 no", "bob delete b", "bob c 100",
	}},
	{"two-users-with-one-root", []string{
		"config bob: {root: /shared, quota: 1000}\n      carol: {root: /shared/, quota: 1200}",
		"bob a 700", "carol b 501 no", "carol b 300", "bob c 1 no", "carol quota Space used: 1000 bytes of 1.2 KiB", "carol c 200",
		"carol d 1 no", "carol delete a", "bob quota Space used: 500 bytes of 1000 bytes", "bob e 500", "bob f 1 no",
	}},
	{"nested-roots", []string{
		"config bob: {root: /b, quota: 1000}\n      carol: {root: /b/deep, quota: 500}\n    quota: 2000",
		"carol a 501 no", "carol a 500", "carol b 1 no", "bob x 501 no", "bob x 500", "alice y 1001 no", "alice y 1000",
		"alice z 1 no", "bob delete deep/a", "carol quota Space used: 0 bytes of 500 bytes", "alice b/deep/z 400", "carol a 101 no",
		"carol a 100", "bob delete x", "bob rename deep/z z", "carol quota Space used: 100 bytes of 500 bytes",
		"bob quota Space used: 500 bytes of 1000 bytes", "alice quota Space used: 1.5 KiB of 2 KiB",
	}},
	{"two-tenants-with-one-place", []string{
		"config bob: {root: /x, quota: 1000}\n" + `  third:
    bucket: BUCKET
    prefix: inbox/x
    quota: 1500
    users: {dora: {password_hash: HASH}}
  fourth:
    bucket: BUCKET
    prefix: inbox/
    users: {emil: {password_hash: HASH, root: /x/, quota: 1200}}`,
		"bob a 900", "emil b 301 no", "emil b 300", "bob c 1 no", "dora c 301 no", "dora c 300", "dora d 1 no", "bob delete b",
		"dora d 300",
	}},
	{"moved-to-another-root", []string{
		"config bob: {root: /old, quota: 1000}", "bob a 600",
		"config bob: {root: /new, quota: 1000}", "bob b 401 no", "bob b 400", "bob c 1 no",
		"bob.new quota Space used: 0 bytes of 1000 bytes", "bob.new a 1000", "bob.new b 1 no", "bob delete a", "bob c 600",
		"config bob: {root: /new, quota: 1100}", "bob d 101 no", "bob.new b 100", "bob.new c 1 no", "bob d 100",
	}},
	{"restart", []string{
		"config bob: {root: /bob, quota: 1000}", "bob a 1000", "restart", "bob.again b 1 no", "bob.again delete a",
		"bob.again b 1000",
	}},
	{"added-during-an-upload", []string{
		"config bob: {root: /bob}", "bob begin a 900", "bob.fits begin b 600",
		"config bob: {root: /bob, quota: 800}", "bob end no", "bob.fits end", "bob c 201 no", "bob c 200",
		"bob delete c", "bob begin large 150", "config bob: {root: /bob}", "bob end", "bob quota No quota is set.",
	}},
	{"counts-what-an-upload-stores-that-began-before", []string{
		"config bob: {root: /bob}\n      carol: {root: /bob}", "carol begin a 900",
		"config bob: {root: /bob, quota: 1000}\n      carol: {root: /bob}", "bob b 100", "carol end", "bob c 1 no",
		"bob quota Space used: 1000 bytes of 1000 bytes",
	}},
	{"replaced-and-appended", []string{
		"config bob: {root: /bob}\n      carol: {root: /bob}", "bob a 900",
		"config bob: {root: /bob, quota: 1000}\n      carol: {root: /bob}", "bob a 1000", "bob a 1001 no", "carol a 100", "bob b 900",
	}},
}

// Quotas count everything stored below each root, no matter who stores it. A reload changes the quotas of open
// sessions.
func TestQuotas(t *testing.T) {
	t.Parallel()
	for _, test := range quotaCases {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			s := &quotaSite{newReloadSite(t, quotaMark), map[string]*quotaSession{}, quotaMark}
			for i, step := range test.steps {
				t.Logf("step %d: %s", i, step)
				s.step(step)
			}
		})
	}
}

// quotaMark is replaced with the lines of "config".
const quotaMark = "      # users"

type quotaSite struct {
	*reloadSite
	sessions map[string]*quotaSession // by the first word of a step
	lines    string                   // lines of the last "config" step
}

type quotaSession struct {
	*ftptest.Client
	data net.Conn // data connection of an upload that has not ended
}

func (s *quotaSite) step(step string) {
	s.t.Helper()
	who, what, _ := strings.Cut(step, " ")
	switch who {
	case "config":
		next := strings.ReplaceAll("      "+what, "{root", "{password_hash: HASH, root")
		s.edit(reloaded, s.expand(s.lines), s.expand(next))
		s.lines = next
		return
	case "restart":
		s.server.kill()
		s.start(s.t, s.file)
		return
	case "put":
		var key string
		var size int
		scan(s.t, what, &key, &size)
		_, err := s.client.PutObject(s.t.Context(), &s3.PutObjectInput{
			Bucket: aws.String(s.buckets[acme]), Key: aws.String(prefix + key),
			Body: bytes.NewReader(make([]byte, size)),
		})
		must.OK(s.t, err)
		return
	}
	c := s.sessions[who]
	if c == nil {
		user, _, _ := strings.Cut(who, ".")
		if user == "alice" {
			user = "alice@acme"
		}
		c = &quotaSession{Client: s.login(user, 230)}
		s.sessions[who] = c
		c.Command(200, "LANG en")
	}
	c.run(s.t, what)
}

// expand replaces the placeholders that newSite replaces.
func (s *quotaSite) expand(lines string) string {
	return strings.NewReplacer("BUCKET", s.buckets[acme], "HASH", fmt.Sprintf("%q", passwordHash(s.t, password))).Replace(lines)
}

// run performs the part of a step after the user name.
func (c *quotaSession) run(t *testing.T, what string) {
	t.Helper()
	verb, rest, _ := strings.Cut(what, " ")
	switch verb {
	case "quota":
		counted := func() bool { // the count after a reload takes a moment
			reply, err := c.Send("SITE QUOTA")
			must.OK(t, err)
			code, _ := ftptest.Parse(reply)
			return code != 451
		}
		waitUntil(t, counted, func() { t.Fatal("the usage is still unknown") })
		c.WantReply(200, rest, "SITE QUOTA")
	case "delete":
		c.Command(250, "DELE "+rest)
	case "rename":
		from, to, _ := strings.Cut(rest, " ")
		c.Command(350, "RNFR "+from)
		c.Command(250, "RNTO "+to)
	case "begin":
		if !c.begin(t, rest) {
			t.Fatal("the upload was refused")
		}
	case "end":
		c.end(rest != "")
	default:
		name := strings.TrimSuffix(what, " no")
		if c.begin(t, name) {
			c.end(name != what)
		} else if name == what {
			t.Fatal("the upload was refused")
		}
	}
}

// begin starts the upload "NAME BYTES". It returns false if the server refuses the upload before the first byte.
func (c *quotaSession) begin(t *testing.T, file string) bool {
	t.Helper()
	var name string
	var size int
	scan(t, file, &name, &size)
	c.Command(200, "TYPE I")
	c.data = c.Data()
	reply, err := c.Send("STOR " + name)
	must.OK(t, err)
	switch code, _ := ftptest.Parse(reply); code {
	case 150:
	case 552:
		_ = c.data.Close()
		return false
	default:
		t.Fatalf("STOR %s: %q", name, reply)
	}
	_, _ = c.data.Write(bytes.Repeat([]byte("x"), size))
	return true
}

func scan(t *testing.T, text string, to ...any) {
	t.Helper()
	_, err := fmt.Sscan(text, to...)
	must.OK(t, err)
}

func (c *quotaSession) end(refused bool) {
	_ = c.data.Close()
	if refused {
		c.Reply(552)
	} else {
		c.Reply(226)
	}
}
