//go:build kube

package deploy

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/babelftp/babelftp/internal/testkit/must"
	"github.com/babelftp/babelftp/internal/testkit/servicetest"
)

// TestKubeResources follows FTPTenants and FTPUsers on an API server with the rights of the chart.
func TestKubeResources(t *testing.T) {
	s := newSite(t, map[string]string{
		teamA: `{buckets: ["*"], hosts: ["*.team-a.example.com"]}`,
		teamB: `{buckets: ["*"]}`,
	})
	replicas := []*replica{s.start(0, ""), s.start(1, "")}
	for _, test := range []struct {
		name string
		run  func(s *site, replicas []*replica)
	}{
		{"apply", testApply},
		{"columns", testColumns},
		{"conditions", testConditions},
		{"last-good-version", testLastGood},
		{"references", testReferences},
		{"claims", testClaims},
		{"rights", testRights},
		{"flood", testFlood},
		{"leader", testLeader},
		{"outage", testOutage},
	} {
		t.Run(test.name, func(t *testing.T) {
			in := s.in(t)
			for _, r := range replicas {
				r.s = in
			}
			test.run(in, replicas)
		})
	}
}

// everywhere waits until try succeeds on each replica.
func everywhere(replicas []*replica, what string, try func(r *replica) error) time.Duration {
	var longest time.Duration
	for i, r := range replicas {
		r.s.t.Helper()
		took := r.s.wait(fmt.Sprintf("%s on replica %d", what, i), busyFactor*takesEffect, func() error { return try(r) })
		if took > takesEffect {
			r.s.t.Logf("%s on replica %d took %v, more than %v", what, i, took, takesEffect)
		}
		longest = max(longest, took)
	}
	return longest
}

// testApply measures how long a change takes until both replicas use it.
func testApply(s *site, replicas []*replica) {
	bucket := s.storage.Bucket(s.t)
	s.tenant("acme", "bucket: "+bucket)
	s.user("alice", "tenant: acme, home: /alice")
	const login = "alice@team-a_acme"
	created := everywhere(replicas, "the first login", func(r *replica) error { return r.mayLogin(login) })

	replicas[0].session(login).Store("first.txt", "hello")
	session := replicas[1].session(login)
	session.Want("hello", "RETR first.txt")

	must.OK(s.t, s.Patch(resourcePath("team-a/ftpusers/alice"), `{"spec": {"disabled": true}}`))
	session.Reply(421)
	disabled := everywhere(replicas, "refusing a disabled user", func(r *replica) error { return r.mayNotLogin(login) })
	must.OK(s.t, s.Patch(resourcePath("team-a/ftpusers/alice"), `{"spec": {"disabled": false}}`))
	enabled := everywhere(replicas, "the login of an enabled user", func(r *replica) error { return r.mayLogin(login) })

	session = replicas[1].session(login)
	start := time.Now()
	must.OK(s.t, s.Delete(resourcePath("team-a/ftpusers/alice")))
	session.Reply(421)
	if took := time.Since(start); took > takesEffect {
		s.t.Errorf("the session of a deleted user ended after %v", took)
	}
	deleted := everywhere(replicas, "refusing a deleted user", func(r *replica) error { return r.mayNotLogin(login) })
	s.t.Logf("in effect after: created %v, disabled %v, enabled %v, deleted %v", created, disabled, enabled, deleted)
}

// testColumns checks what kubectl get prints.
func testColumns(s *site, replicas []*replica) {
	s.tenant("columns", "bucket: "+s.storage.Bucket(s.t)+", hosts: [columns.team-a.example.com]")
	s.user("cleo", "tenant: columns")
	s.user("dave", "tenant: columns, disabled: true")
	tenant := resourcePath("team-a/ftptenants/columns")
	everywhere(replicas, "the login", func(r *replica) error { return r.mayLogin("cleo@team-a_columns") })
	s.waitFor(tenant, "Accepted", "True", "Accepted")
	s.waitFor(tenant, "BucketReady", "True", "Ready")
	s.wait("the number of users", waitTimeout, func() error {
		o, err := s.Get(tenant)
		if err == nil && fmt.Sprint(field(o, "status", "users")) != "2" {
			err = fmt.Errorf("status: %v", o["status"])
		}
		return err
	})
	for _, tt := range []struct{ path, name, columns string }{
		{"ftptenants", "columns", "NAME BUCKET USERS SESSIONS READY AGE"},
		{"ftpusers", "cleo", "NAME TENANT ENABLED LAST LOGIN READY AGE"},
		{"ftpusers", "dave", "NAME TENANT ENABLED LAST LOGIN READY AGE"},
	} {
		table := s.Table(resourcePath(teamA + "/" + tt.path + "/" + tt.name))
		var names []string
		values := map[string]string{}
		for i, c := range table.ColumnDefinitions {
			if c.Priority == 0 {
				names = append(names, strings.ToUpper(c.Name))
			}
			values[strings.ToUpper(c.Name)] = fmt.Sprint(table.Rows[0].Cells[i])
		}
		if got := strings.Join(names, " "); got != tt.columns {
			s.t.Errorf("columns of %s: got %s, want %s", tt.path, got, tt.columns)
		}
		s.t.Logf("%s: %v", tt.name, values)
	}
}

// testLastGood checks that a broken version of a resource neither replaces the last good one nor affects others.
func testLastGood(s *site, replicas []*replica) {
	s.tenant("good", "bucket: "+s.storage.Bucket(s.t))
	s.user("gina", "tenant: good, home: /gina")
	everywhere(replicas, "the login", func(r *replica) error { return r.mayLogin("gina@team-a_good") })
	user := resourcePath("team-a/ftpusers/gina")
	s.waitFor(user, "Accepted", "True", "Accepted")

	must.OK(s.t, s.Patch(user, `{"spec": {"password_hash_secret": {"name": "missing"}, "home": "/other"}}`))
	s.t.Log(s.waitFor(user, "Accepted", "False", "SecretNotFound"))
	for _, r := range replicas {
		r.session("gina@team-a_good").WantReply(257, `"/gina" is the current directory.`, "PWD")
	}
	if got := s.conditions(user)["Accepted"].ObservedGeneration; got != 2 {
		s.t.Errorf("observedGeneration: %d, want 2", got)
	}
	s.secret(teamA, "missing", "password_hash", servicetest.PasswordHash().Reveal())
	s.waitFor(user, "Accepted", "True", "Accepted")
	everywhere(replicas, "the repaired version", func(r *replica) error {
		return r.startsIn("gina@team-a_good", "/other")
	})
}

// testReferences checks texts from a ConfigMap, and that a changed Secret is used.
func testReferences(s *site, replicas []*replica) {
	s.Apply(`
apiVersion: v1
kind: ConfigMap
metadata: {name: greetings, namespace: team-a}
data: {fr: "Bonjour {User}", en: "Hello {User}"}
`)
	s.tenant("texts", "bucket: "+s.storage.Bucket(s.t)+
		", default_language: fr, welcome_config_map: {name: greetings}")
	s.secret(teamA, "tess", "hash", "x")
	s.Apply(manifest("FTPUser", teamA, "tess", "tenant: texts, password_hash_secret: {name: tess, key: hash}"))
	s.t.Log(s.waitFor(resourcePath("team-a/ftpusers/tess"), "Accepted", "False", "Invalid"))
	s.secret(teamA, "tess", "hash", servicetest.PasswordHash().Reveal())
	everywhere(replicas, "the login with the new Secret", func(r *replica) error {
		return r.mayLogin("tess@team-a_texts")
	})
	wants := func(text string) func(r *replica) error {
		return func(r *replica) error {
			c, err := r.connect()
			if err != nil {
				return err
			}
			defer c.Close()
			if _, err := c.Send("USER tess@team-a_texts"); err != nil {
				return err
			}
			reply, err := c.Send("PASS " + servicetest.Password)
			if err == nil && !strings.Contains(reply, text) {
				err = fmt.Errorf("%s", reply)
			}
			return err
		}
	}
	everywhere(replicas, "the greeting", wants("Bonjour tess"))
	must.OK(s.t, s.Patch("/api/v1/namespaces/team-a/configmaps/greetings", `{"data": {"fr": "Salut {User}"}}`))
	everywhere(replicas, "the new greeting", wants("Salut tess"))
}

// testRights checks that the rights of the chart do not reach further than the servers need, and the rights of a
// team not further than its own resources.
func testRights(s *site, _ []*replica) {
	server := s.As(s.token)
	s.Apply(`
apiVersion: v1
kind: ServiceAccount
metadata: {name: dev, namespace: team-a}
`)
	team := s.As(s.AccountToken(teamA, "dev"))
	const resources = "/apis/babelftp.io/v1alpha1/namespaces/"
	for _, tt := range []struct {
		name, method, path, body string
		server, team             bool
	}{
		{"list-tenants", http.MethodGet, resources + "team-a/ftptenants", "", true, true},
		{"list-users", http.MethodGet, resources + "team-b/ftpusers", "", true, false},
		{"list-elsewhere", http.MethodGet, resources + "elsewhere/ftpusers", "", false, false},
		{"read-secret", http.MethodGet, "/api/v1/namespaces/team-a/secrets/ftp-users", "", true, false},
		{"read-secret-of-another", http.MethodGet, "/api/v1/namespaces/elsewhere/secrets/ftp-users", "", false, false},
		{"read-secret-of-the-release", http.MethodGet, "/api/v1/namespaces/ftp/secrets/babelftp", "", false, false},
		{"list-all-secrets", http.MethodGet, "/api/v1/secrets", "", false, false},
		{"write-secret", http.MethodPost, "/api/v1/namespaces/team-a/secrets", `{"metadata": {"name": "x"}}`, false, false},
		{"write-config-map", http.MethodPost, "/api/v1/namespaces/team-a/configmaps", `{"metadata": {"name": "x"}}`, false,
			false},
		{"create-user", http.MethodPost, resources + "team-a/ftpusers",
			`{"apiVersion": "babelftp.io/v1alpha1", "kind": "FTPUser", "metadata": {"name": "x"}, "spec": {"tenant": "x", "disabled": true}}`,
			false, true},
		{"delete-user", http.MethodDelete, resources + "team-a/ftpusers/x", "", false, true},
		{"create-user-of-another", http.MethodPost, resources + "team-b/ftpusers",
			`{"apiVersion": "babelftp.io/v1alpha1", "kind": "FTPUser", "metadata": {"name": "x"}, "spec": {"tenant": "x", "disabled": true}}`,
			false, false},
		{"delete-secret", http.MethodDelete, "/api/v1/namespaces/team-a/secrets/ftp-users", "", false, false},
		{"list-pods", http.MethodGet, "/api/v1/namespaces/ftp/pods", "", false, false},
		{"list-definitions", http.MethodGet, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", "", false, false},
		{"list-nodes", http.MethodGet, "/api/v1/nodes", "", false, false},
		{"patch-role", http.MethodGet, "/apis/rbac.authorization.k8s.io/v1/namespaces/team-a/rolebindings", "", false, false},
		{"leases-elsewhere", http.MethodGet, "/apis/coordination.k8s.io/v1/namespaces/team-a/leases", "", false, false},
	} {
		for _, who := range []struct {
			name    string
			allowed bool
			request func(method, path, kind, body string, header ...string) (int, string, error)
		}{{"server", tt.server, server.Request}, {"team", tt.team, team.Request}} {
			code, text, err := who.request(tt.method, tt.path, "application/json", tt.body)
			if err != nil || (code == http.StatusForbidden) == who.allowed {
				s.t.Errorf("%s: the %s: %d %v %.200s", tt.name, who.name, code, err, text)
			}
		}
	}
	// the status belongs to the servers
	s.tenant("rights", "bucket: "+s.storage.Bucket(s.t))
	status := resourcePath("team-a/ftptenants/rights") + "/status"
	if code, text, err := team.Request(
		http.MethodPatch, status, "application/merge-patch+json", `{"status": {"users": 7}}`); code != 403 {
		s.t.Errorf("a team writes a status: %d %v %s", code, err, text)
	}
	if code, text, err := server.Request(
		http.MethodPatch, resourcePath("team-a/ftptenants/rights"), "application/merge-patch+json",
		`{"spec": {"bucket": "other"}}`); code != 403 {
		s.t.Errorf("the server writes a spec: %d %v %s", code, err, text)
	}
}

// testClaims lets team-b take what team-a has.
func testClaims(s *site, replicas []*replica) {
	bucket := s.storage.Bucket(s.t)
	s.tenant("victim", "bucket: "+bucket+", prefix: data/in/, hosts: [victim.team-a.example.com]")
	s.user("vera", "tenant: victim")
	everywhere(replicas, "the login", func(r *replica) error { return r.mayLogin("vera@team-a_victim") })
	s.waitFor(resourcePath("team-a/ftptenants/victim"), "Accepted", "True", "Accepted")
	free := s.storage.Bucket(s.t)
	s.Apply(manifest("FTPTenant", teamB, "own", "bucket: "+s.storage.Bucket(s.t)))
	for _, tt := range []struct{ name, kind, spec, reason string }{
		{"bucket", "FTPTenant", "bucket: " + bucket, "BucketTaken"},
		{"prefix-below", "FTPTenant", "bucket: " + bucket + ", prefix: data/in/secret/", "BucketTaken"},
		{"prefix-above", "FTPTenant", "bucket: " + bucket + ", prefix: data", "BucketTaken"},
		{"folder", "FTPTenant", "bucket: " + free + ", folders: {/stolen: {bucket: " + bucket + ", prefix: data/in/}}",
			"BucketTaken"},
		{"host-of-another", "FTPTenant", "bucket: " + free + ", hosts: [victim.team-a.example.com]", "HostTaken"},
		{"own-endpoint", "FTPTenant", "bucket: " + free + ", s3: {endpoint: \"http://127.0.0.1:1\", access_key_id: A, " +
			"secret_access_key_secret: {name: ftp-users, key: password_hash}}", "NotAllowed"},
		{"webhook", "FTPTenant", "bucket: " + free +
			", webhook: {url: \"http://169.254.169.254/\", secret_secret: {name: ftp-users, key: password_hash}}",
			"NotAllowed"},
		{"hook", "FTPTenant", "bucket: " + free + ", auth: {hook: {url: \"http://10.0.0.1/\"}}", "NotAllowed"},
		{"role", "FTPTenant", "bucket: " + free + ", s3: {assume_role: {role_arn: \"arn:aws:iam::123456789012:role/admin\"}}",
			"NotAllowed"},
		{"secret-of-another", "FTPUser", "tenant: own, password_hash_secret: {name: only-in-team-a}", "SecretNotFound"},
		{"login-of-another", "FTPUser", "tenant: own, name: vera@team-a_victim, password_hash_secret: {name: ftp-users}",
			"NameTaken"},
		{"tenant-of-another", "FTPUser", "tenant: victim, password_hash_secret: {name: ftp-users}", "TenantNotFound"},
	} {
		s.t.Run(tt.name, func(t *testing.T) {
			s := s.in(t)
			s.secret(teamA, "only-in-team-a", "password_hash", servicetest.PasswordHash().Reveal())
			s.Apply(manifest(tt.kind, teamB, tt.name, tt.spec))
			plural := strings.ToLower(tt.kind) + "s"
			t.Log(s.waitFor(resourcePath(teamB+"/"+plural+"/"+tt.name), "Accepted", "False", tt.reason))
			if err := replicas[0].mayLogin("vera@team-a_victim"); err != nil {
				t.Error(err)
			}
			if err := s.Delete(resourcePath(teamB + "/" + plural + "/" + tt.name)); err != nil {
				t.Error(err)
			}
		})
	}
}

// testOutage stops the API server, restarts a container meanwhile, and starts the API server again.
func testOutage(s *site, replicas []*replica) {
	s.tenant("away", "bucket: "+s.storage.Bucket(s.t))
	s.user("anna", "tenant: away")
	const login = "anna@team-a_away"
	everywhere(replicas, "the login", func(r *replica) error { return r.mayLogin(login) })
	for _, r := range replicas {
		s.wait("the copy for restarts", waitTimeout, func() error { return r.keeps("anna") })
	}
	s.Halt()
	for _, r := range replicas {
		if err := r.mayLogin(login); err != nil {
			s.t.Error(err)
		}
	}
	replicas[1].kill()
	start := time.Now()
	replicas[1] = s.start(1, replicas[1].root)
	s.t.Logf("ready without an API server after %v", time.Since(start))
	if err := replicas[1].mayLogin(login); err != nil {
		s.t.Error(err)
	}
	s.Resume()
	must.OK(s.t, s.Patch(resourcePath("team-a/ftpusers/anna"), `{"spec": {"disabled": true}}`))
	for i, r := range replicas {
		took := s.wait("following the API server again", waitTimeout, func() error { return r.mayNotLogin(login) })
		s.t.Logf("replica %d follows the API server again after %v", i, took)
	}
}

// testLeader kills the replica that writes the status.
func testLeader(s *site, replicas []*replica) {
	leader := func() (int, error) {
		leases, err := s.Get("/apis/coordination.k8s.io/v1/namespaces/ftp/leases")
		if err != nil {
			return 0, err
		}
		for _, lease := range list(leases["items"]) {
			for number := range replicas {
				if field(lease, "spec", "holderIdentity") == fmt.Sprintf("babelftp-%d", number) {
					return number, nil
				}
			}
		}
		return 0, fmt.Errorf("no leader: %v", leases["items"])
	}
	first, err := leader()
	if err != nil {
		s.t.Fatal(err)
	}
	root := replicas[first].root
	replicas[first].kill()
	start := time.Now()
	s.tenant("led", "bucket: "+s.storage.Bucket(s.t))
	s.waitFor(resourcePath("team-a/ftptenants/led"), "Ready", "True", "Ready")
	s.t.Logf("another replica wrote the status after %v", time.Since(start))
	if next, err := leader(); err != nil || next == first {
		s.t.Errorf("the leader is %d after %d was killed: %v", next, first, err)
	}
	replicas[first] = s.start(first, root)
}

// testConditions checks the conditions and events of a tenant whose bucket does not exist.
func testConditions(s *site, _ []*replica) {
	s.tenant("lost", "bucket: does-not-exist-anywhere")
	lost := resourcePath("team-a/ftptenants/lost")
	s.waitFor(lost, "Accepted", "True", "Accepted")
	message := ""
	s.wait("BucketReady=False", waitTimeout, func() error {
		c := s.conditions(lost)["BucketReady"]
		if c.Status != "False" {
			return fmt.Errorf("%+v", c)
		}
		message = c.Message
		return nil
	})
	s.t.Log(message)
	if !strings.Contains(message, "does-not-exist-anywhere") {
		s.t.Errorf("message: %s", message)
	}
	if c := s.conditions(lost)["Ready"]; c.Status != "False" || c.ObservedGeneration != 1 {
		s.t.Errorf("Ready: %+v", c)
	}
	s.wait("an event", waitTimeout, func() error {
		events, err := s.Get("/api/v1/namespaces/" + teamA + "/events")
		if err != nil {
			return err
		}
		for _, e := range list(events["items"]) {
			if field(e, "involvedObject", "name") == "lost" && field(e, "type") == "Warning" {
				s.t.Log(field(e, "reason"), field(e, "message"))
				return nil
			}
		}
		return fmt.Errorf("no warning about the tenant in %d events", len(list(events["items"])))
	})
}

// testFlood lets team-b create hundreds of resources, most of them invalid, and measures how long changes of team-a
// take meanwhile. Then a ResourceQuota ends it.
func testFlood(s *site, replicas []*replica) {
	s.tenant("calm", "bucket: "+s.storage.Bucket(s.t))
	s.user("cora", "tenant: calm, home: /0")
	const login = "cora@team-a_calm"
	everywhere(replicas, "the login", func(r *replica) error { return r.mayLogin(login) })

	done := make(chan struct{})
	var group sync.WaitGroup
	end := sync.OnceFunc(func() {
		close(done)
		group.Wait()
	})
	defer end()
	for worker := range 4 {
		group.Go(func() {
			for n := 0; ; n++ {
				select {
				case <-done:
					return
				default:
				}
				name := fmt.Sprintf("flood-%d-%d", worker, n%100)
				kind, spec := "FTPTenant", fmt.Sprintf("bucket: nothing-%d, hosts: [victim.team-a.example.com]", n)
				if n%2 == 1 {
					kind, spec = "FTPUser", fmt.Sprintf("tenant: nobody, disabled: true, home: /%d", n)
				}
				if err := s.TryApply(manifest(kind, teamB, name, spec)); err != nil {
					s.t.Error(err)
					return
				}
			}
		})
	}
	longest := time.Duration(0)
	for n := range 5 {
		home := fmt.Sprintf("/%d", n+1)
		must.OK(s.t, s.Patch(resourcePath("team-a/ftpusers/cora"), fmt.Sprintf(`{"spec": {"home": %q}}`, home)))
		longest = max(longest, everywhere(replicas, "a change of a neighbor", func(r *replica) error {
			return r.startsIn(login, home)
		}))
	}
	end()
	s.t.Logf("a neighbor's changes were in effect after %v at most", longest)

	s.Apply(`
apiVersion: v1
kind: ResourceQuota
metadata: {name: ftp, namespace: team-b}
spec: {hard: {count/ftpusers.babelftp.io: "1"}}
`)
	must.OK(s.t, s.Patch( // like the controller, which is not here
		"/api/v1/namespaces/team-b/resourcequotas/ftp/status",
		`{"status": {"hard": {"count/ftpusers.babelftp.io": "1"}, "used": {"count/ftpusers.babelftp.io": "1"}}}`))
	err := s.TryApply(manifest("FTPUser", teamB, "one-more", "tenant: nobody, disabled: true"))
	if err == nil || !strings.Contains(err.Error(), "exceeded quota") {
		s.t.Errorf("beyond the quota: %v", err)
	}
}
