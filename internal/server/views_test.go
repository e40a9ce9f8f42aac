package server

import (
	"errors"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"net"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/babelftp/babelftp/internal/config"
	"github.com/babelftp/babelftp/internal/testkit/ftptest"
	"github.com/babelftp/babelftp/internal/testkit/must"
	"github.com/babelftp/babelftp/internal/testkit/s3test"
	"github.com/babelftp/babelftp/internal/testkit/servicetest"
)

var (
	views    = flag.Int("views", 0, "how many scripts TestViews plays; 0 stands for 60, or for 20 with -short")
	viewSeed = flag.Uint64("views.seed", 1, "the seed of the first one; each that follows has the next")
)

// viewSteps is the length of a script before it is shortened.
const viewSteps = 24

// TestViews makes users of two tenants send random commands, and checks each reply with a model of what each user may
// see and do:
//
//   - Every permitted command is accepted, and every other command is refused.
//   - Downloads, listings and sizes match the model, and so do the buckets at the end.
//   - A user learns nothing about invisible files. One user of each script is the observer, and there are two worlds.
//     Steps of other users that the observer cannot see only happen in the first world. Still, all replies to the
//     observer and all downloaded bytes must be the same in both.
//
// A failing script is shortened and printed. To run more scripts:
//
//	go test ./internal/server -run TestViews -views 10000 -views.seed 1
func TestViews(t *testing.T) {
	count := *views
	switch {
	case count == 0 && testing.Short():
		count = 20
	case count == 0:
		count = 60
	}
	w := newWorlds(t)
	for i := range uint64(count) {
		seed := *viewSeed + i
		random := rand.New(rand.NewPCG(seed, 0))
		observer := viewUsers()[random.IntN(len(viewUsers()))].name
		script := randomViews(random, observer)
		err := w.play(observer, script)
		if err == nil {
			continue
		}
		short := shortenViews(script, func(script []viewStep) bool { return w.play(observer, script) != nil })
		t.Fatalf(
			"seed %d, observer %s: %v\nshortened to %d of %d steps:\n%v\n%v", seed, observer, err, len(short),
			len(script), short, w.play(observer, short))
	}
}

// TestView runs scripts with which TestViews has found bugs.
func TestView(t *testing.T) {
	w := newWorlds(t)
	for name, tc := range map[string]struct {
		observer string
		script   []viewStep
	}{
		"append-to-an-unseen-file": {"scanner", []viewStep{
			{"admin", "STOR", "/partner/in/b", "", "hidden"},
			{"scanner", "APPE", "/partner/in/b", "", ""},
			{"scanner", "SIZE", "/partner/in/b", "", ""},
		}},
		"directory-to-an-unseen-one": {"writer", []viewStep{
			{"admin", "STOR", "/partner/in/x/b", "", "hidden"},
			{"writer", "MKD", "/names/mine", "", ""},
			{"writer", "RNTO", "/names/mine", "/in/x", ""},
		}},
		"copy-of-a-directory-to-an-unseen-one": {"writer", []viewStep{
			{"admin", "STOR", "/partner/in/x/b", "", "hidden"},
			{"writer", "COPY", "/out/sub", "/in/x", ""},
		}},
		"unseen-directory-to-where-it-is-listed": {"writer", []viewStep{
			{"admin", "STOR", "/partner/in/b", "", "hidden"},
			{"writer", "RNTO", "/in", "/names/in", ""},
			{"writer", "LIST", "/names/in", "", ""},
		}},
		"name-that-the-charset-lacks": {"bob", []viewStep{
			{"bob", "MKD", "/partner/é", "", ""},
			{"bob", "NLST", "/partner", "", ""},
		}},
		"unseen-directory-with-a-name-of-the-server": {"scanner",
			[]viewStep{{"scanner", "CWD", ".babelftp/x", "", ""}}},
	} {
		t.Run(name, func(t *testing.T) {
			if err := w.play(tc.observer, tc.script); err != nil {
				t.Error(err)
			}
		})
	}
}

// shortenViews drops steps while the rest still fails: first many together, then single ones.
func shortenViews(script []viewStep, fails func([]viewStep) bool) []viewStep {
	for size := len(script) / 2; size > 0; size /= 2 {
		for i := 0; i+size <= len(script); {
			if rest := slices.Delete(slices.Clone(script), i, i+size); fails(rest) {
				script = rest
			} else {
				i += size
			}
		}
	}
	return script
}

// A viewStep is a command of a user, with a second pathname for commands with two, and the data of uploads.
type viewStep struct{ user, verb, name, second, data string }

func (s viewStep) String() string {
	return strings.TrimRight(fmt.Sprintf("\n\t{%q, %q, %q, %q, %q},", s.user, s.verb, s.name, s.second, s.data), " ")
}

// randomViews returns a random script. Half of the steps are the observer's.
func randomViews(random *rand.Rand, observer string) []viewStep {
	pick := func(from ...string) string { return from[random.IntN(len(from))] }
	var script []viewStep
	for range viewSteps {
		u := observer
		if random.IntN(2) == 0 {
			u = viewUsers()[random.IntN(len(viewUsers()))].name
		}
		dirs := []string{"/", "/sub"}
		for dir := range viewUser(u).rules {
			dirs = append(dirs, dir)
		}
		if viewUser(u).root == "/" {
			dirs = append(dirs, "/partner", "/partner/in", "/partner/out", "/partner/hidden", "/partner/names")
		}
		slices.Sort(dirs)
		name := func() string {
			dir := pick(dirs...)
			return pick(
				path.Join(dir, pick("a", "b", "a", "b", "é", "e\u0301", "new", "sub", "sub/a", "sub/deep/b", "*", "?")),
				path.Join(dir, pick("a", "b", "sub")), path.Join(dir, pick("a", "b")),
				dir, pick(
					"a", "b", "sub", "../in/a", "../../hidden/a", "./sub//a", "../../../../acme/partner/hidden/a",
					"\xe9", ".babelftp/x"),
				path.Join(dir, "a")+"/", path.Join(dir, "a", "below"), path.Join(dir, "..", pick(dirs...), "b"),
				"/hidden/../out/"+pick("a", "b"),
			)
		}
		s := viewStep{user: u, name: name()}
		switch s.verb = pick(
			"CWD", "LIST", "NLST", "MLSD", "MLST", "STAT", "SIZE", "MDTM", "HASH", "RETR", "REST 2 RETR", "PRESIGN",
			"URL", "MFMT", "XCRC",
			"STOR", "STOR", "APPE", "REST 2 STOR", "STOU", "DELE", "DELE", "MKD", "RMD", "MKDIR", "RMDIR", "QUOTA",
			"RNTO", "RNTO", "RNTO", "COPY", "CPTO", "PWD",
		); s.verb {
		case "RNTO", "COPY", "CPTO":
			s.second = name()
		case "STOR", "APPE", "REST 2 STOR":
			s.data = pick("", "12", "123", "12345")
		case "STOU":
			s.name, s.data = "", pick("", "12", "123", "12345")
		case "QUOTA", "PWD":
			s.name = ""
		}
		script = append(script, s)
	}
	return script
}

// worlds are two buckets on one server, in which equal tenants have equal users.
type worlds struct {
	t       *testing.T
	srv     *Server
	s       *s3test.Server
	buckets [2]string
	stored  [2]map[string]string // known contents of the buckets
}

// Prefixes of the tenants, and of the folder that both have.
const (
	acmePrefix   = "acme/"
	betaPrefix   = "acme2/"
	sharedPrefix = "shared/"
)

func newWorlds(t *testing.T) *worlds {
	w := &worlds{t: t, s: s3test.Start(t, "versitygw")}
	cfg := servicetest.NewConfig(t, w.s)
	cfg.Limits.Address.Sessions = 0
	cfg.Tenants = map[string]*config.Tenant{}
	for i := range w.buckets {
		w.buckets[i] = w.s.Bucket(t)
		w.stored[i] = map[string]string{}
		tenants := map[string]*config.Tenant{
			"acme": {Prefix: acmePrefix, Folders: map[string]*config.Folder{"/partner/shared": {Prefix: sharedPrefix,
				Permissions: granted("lrwd")}}},
			"beta": {Prefix: betaPrefix, Folders: map[string]*config.Folder{"/shared": {Prefix: sharedPrefix}}},
		}
		for name, tenant := range tenants {
			tenant.Bucket, tenant.Presign, tenant.Quota, tenant.Users = w.buckets[i], time.Hour, 1<<20,
				map[string]*config.User{}
			tenant.Hosts = []string{fmt.Sprintf("%s%d.example", name, i)}
			cfg.Tenants[fmt.Sprintf("%s%d", name, i)] = tenant
		}
		tenants["beta"].Compatibility.Charset = servicetest.Encoding(t, "koi8-r")
		tenants["acme"].PathPermissions = map[string][]config.Permission{"/partner/archive": granted("lr")}
		for _, u := range viewUsers() {
			configured := permitted(t, u.rights, u.rules)
			configured.Root, configured.Overwrite = u.root, u.overwrite
			tenants[u.tenant].Users[u.name] = configured
		}
	}
	w.srv = start(t, cfg, Options{AWS: w.s.AWSConfig()})
	for _, b := range w.srv.buckets() { // the check of a bucket temporarily stores an object
		must.OK(t, b.AwaitUsable(t.Context(), nil))
	}
	count(t, w.srv)
	return w
}

// play runs a script in both worlds and returns the first error.
func (w *worlds) play(observer string, script []viewStep) error {
	var models [2]*viewModel
	for i := range models {
		if _, err := w.contents(i, w.stored[i]); err != nil { // remove the objects of a failed script
			return err
		}
		if err := w.fill(i, startOfViews()); err != nil {
			return err
		}
		models[i] = newViewModel(startOfViews())
	}
	count(w.t, w.srv) // include the changes of fill
	sessions := [2]map[string]*ftptest.Conn{{}, {}}
	defer func() {
		for _, c := range slices.Concat(
			slices.Collect(maps.Values(sessions[0])), slices.Collect(maps.Values(sessions[1]))) {
			_ = c.Close()
		}
	}()
	o := viewUser(observer)
	for i, st := range script {
		seen := models[0].sight(o, viewUser(st.user), st)
		if st.user != observer && seen == someSeen {
			continue // otherwise the worlds would differ visibly for the observer
		}
		if models[0].obstructed(viewUser(st.user), st) != models[1].obstructed(viewUser(st.user), st) {
			continue // depends on S3
		}
		var results [2]viewResult
		for world, m := range models {
			if world > 0 && st.user != observer && seen == noneSeen {
				continue
			}
			c, err := w.session(sessions[world], world, st.user)
			if err != nil {
				return err
			}
			if results[world], err = run(c, st); err != nil {
				return fmt.Errorf("step %d,%v %w", i+1, st, err)
			}
			if err := m.check(viewUser(st.user), st, results[world]); err != nil {
				return fmt.Errorf("step %d,%v world %d: %q: %w", i+1, st, world, results[world].replies, err)
			}
		}
		if st.user == observer {
			if a, b := w.neutral(results[0]), w.neutral(results[1]); a != b {
				return fmt.Errorf(
					"step %d,%v the observer sees %q, and %q without what others do unseen", i+1, st, a, b)
			}
		}
	}
	for world, m := range models {
		got, err := w.contents(world, m.objects)
		if err != nil {
			return err
		}
		if !maps.Equal(got, m.objects) {
			maps.DeleteFunc(got, func(key, content string) bool {
				want, ok := m.objects[key]
				if ok && want == content {
					delete(m.objects, key)
				}
				return ok && want == content
			})
			return fmt.Errorf("the bucket of world %d has %q, want %q", world, got, m.objects)
		}
	}
	return nil
}

// session returns the session of a user in a world.
func (w *worlds) session(open map[string]*ftptest.Conn, world int, user string) (*ftptest.Conn, error) {
	if c := open[user]; c != nil {
		return c, nil
	}
	c, err := ftptest.Open(w.srv.Addr().String())
	if err != nil {
		return nil, err
	}
	open[user] = c
	_, err = c.Reply()
	for _, line := range []string{fmt.Sprintf("USER %s@%s%d", user, viewUser(user).tenant, world),
		"PASS " + servicetest.Password, "TYPE I"} {
		reply, failed := c.Send(line)
		if err = errors.Join(err, failed); reply == "" || reply[0] > '3' {
			err = errors.Join(err, fmt.Errorf("%s: %s", line, reply))
		}
	}
	return c, err
}

// A viewResult is the result of a step for its user.
type viewResult struct {
	replies []string
	data    string
}

// code returns the code of the last reply.
func (r viewResult) code() int {
	code, _ := ftptest.Parse(r.replies[len(r.replies)-1])
	return code
}

func (r viewResult) ok() bool { return r.code() < 400 }

// run runs a step.
func run(c *ftptest.Conn, st viewStep) (r viewResult, err error) {
	send := func(line string) bool {
		reply, failed := c.Send(line)
		err = errors.Join(err, failed)
		r.replies = append(r.replies, reply)
		return err == nil && reply[0] < '4'
	}
	verb := st.verb
	if rest, after, found := strings.Cut(verb, "REST 2 "); found && rest == "" {
		send("REST 2")
		verb = after
	}
	line := verb + " " + st.name
	switch verb {
	case "LIST", "NLST", "MLSD", "RETR":
		var reply string
		r.data, reply, err = c.Download(line)
		r.replies = append(r.replies, reply)
	case "STOR", "APPE", "STOU":
		var data net.Conn
		if data, err = c.Data(); err != nil {
			return r, err
		}
		defer data.Close()
		if send(strings.TrimSuffix(line, " ")) && strings.HasPrefix(r.replies[len(r.replies)-1], "150") {
			_, err = data.Write([]byte(st.data))
			_ = data.Close()
			last, failed := c.Reply()
			r.replies, err = append(r.replies, last), errors.Join(err, failed)
		}
	case "RNTO":
		if send("RNFR " + st.name) {
			send("RNTO " + st.second)
		}
	case "COPY":
		send("SITE COPY " + st.name + " " + st.second)
	case "CPTO":
		if send("SITE CPFR " + st.name) {
			send("SITE CPTO " + st.second)
		}
	case "MFMT":
		send("MFMT 20240102030405 " + st.name)
	case "PRESIGN", "URL", "MKDIR", "RMDIR", "QUOTA":
		send(strings.TrimSuffix("SITE "+line, " "))
	default:
		send(strings.TrimSuffix(line, " "))
	}
	return r, err
}

// volatile matches what differs between sessions that see the same: times, generated names, and signatures of links.
var volatile = regexp.MustCompile(
	`[A-Z][a-z]{2} [ \d]\d (\d\d:\d\d| \d{4})|\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d)?|20\d{6}T\d{6}Z?(\.\d+)?|20\d{12}(\.\d+)?|X-Amz[^ ]*`)

// neutral returns a result without volatile parts and without the differences between the worlds.
func (w *worlds) neutral(r viewResult) string {
	text := strings.Join(append(r.replies, r.data), "\n")
	for i, bucket := range w.buckets {
		text = strings.NewReplacer(
			bucket, "BUCKET", fmt.Sprintf("acme%d", i), "acme", fmt.Sprintf("beta%d", i), "beta").Replace(text)
	}
	return volatile.ReplaceAllString(text, "~")
}
