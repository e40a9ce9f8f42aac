package config

import (
	"strings"
	"testing"
	"time"
)

// A history is a list of steps and checks, as lines:
//
//   - TENANT [AGE] HOST... BUCKET/PREFIX...    applies a tenant; words with a slash are the place and then folders
//   - TENANT                                   deletes it
//     status                                     the leader writes the status
//     restart                                    the server forgets everything
//     restore                                    all resources are created again, in the order of their names
//     same                                       the next tenants have the same time of creation
//     = TENANT REASON GENERATION [TEXT]          merges, and checks the outcome
//
// A tenant is NAMESPACE/NAME.
func TestClaims(t *testing.T) {
	for name, history := range map[string]string{
		"older-wins": `
			+ b/one a.example x/
			+ a/two a.example y/
			= b/one Accepted 1
			= a/two HostTaken 0 spec.hosts.0: a.example is also a host of the tenant b_one`,
		"ties-by-namespace": `
			same
			+ b/one a.example x/
			+ a/two a.example y/
			= a/two Accepted 1
			= b/one HostTaken 0 tenant a_two`,
		"ties-by-name": `
			same
			+ a/two a.example x/
			+ a/one a.example y/
			= a/one Accepted 1
			= a/two HostTaken 0 tenant a_one`,
		"tie-with-status": `
			same
			+ b/one a.example x/
			= b/one Accepted 1
			status
			+ a/two a.example y/
			= b/one Accepted 1
			= a/two HostTaken 0 tenant b_one`,
		"restored": `
			+ b/one a.example x/
			= b/one Accepted 1
			status
			+ a/two a.example y/
			= a/two HostTaken 0 b_one
			restore
			restart
			= b/one Accepted 1
			= a/two HostTaken 0 b_one`,
		"added-later": `
			+ a/old x/
			+ b/new a.example y/
			= b/new Accepted 1
			status
			+ a/old a.example x/
			= b/new Accepted 1
			= a/old HostTaken 1 tenant b_new
			restart
			= a/old HostTaken 1 tenant b_new`,
		"added-later-without-status": `
			+ a/old x/
			= a/old Accepted 1
			status
			+ b/new a.example y/
			+ a/old a.example x/
			= a/old Accepted 2
			= b/new HostTaken 0 tenant a_old`,
		"released": `
			+ a/old a.example x/
			= a/old Accepted 1
			status
			+ b/new a.example y/
			= b/new HostTaken 0 a_old
			+ a/old x/
			= a/old Accepted 2
			= b/new Accepted 1`,
		"released-by-a-broken-version": `
			+ a/old a.example x/
			= a/old Accepted 1
			status
			+ b/new a.example y/
			+ a/old BROKEN/
			= a/old Invalid 1 spec.bucket
			= b/new HostTaken 0 a_old`,
		"released-by-a-version-that-loses": `
			+ a/one a.example x/
			+ b/two b.example y/
			= b/two Accepted 1
			status
			+ b/two a.example y/
			+ c/three b.example z/
			= b/two HostTaken 1 a_one
			= c/three HostTaken 0 b_two`,
		"deleted": `
			+ a/old a.example x/
			= a/old Accepted 1
			status
			+ b/new a.example y/
			= b/new HostTaken 0 a_old
			- a/old
			= b/new Accepted 1
			status
			+ a/old a.example x/
			= a/old HostTaken 0 b_new`,
		"recreated": `
			+ a/old a.example x/
			= a/old Accepted 1
			status
			- a/old
			+ a/old BROKEN/
			= a/old Invalid 0 spec.bucket`,
		"swap": `
			+ a/one a.example x/
			+ b/two b.example y/
			= b/two Accepted 1
			status
			+ a/one b.example x/
			+ b/two a.example y/
			= a/one Accepted 2
			= b/two Accepted 2`,
		"the-loser-gets-what-a-later-loser-had": `
			+ a/one x/
			+ b/two y/
			+ c/three z/
			= c/three Accepted 1
			status
			+ c/three b.example z/
			+ b/two a.example b.example y/
			+ a/one a.example x/
			= a/one Accepted 2
			= b/two HostTaken 1 a_one
			= c/three Accepted 2`,
		"file": `
			+ a/one file.example x/
			+ a/two files/
			+ a/three files/sub/
			+ a/four y/ files/
			= a/one HostTaken 0 tenant file
			= a/two BucketTaken 0 tenant file
			= a/three BucketTaken 0 the prefix "sub/" in the bucket files overlaps the prefix "", which the tenant file has already
			= a/four BucketTaken 0 spec.folders./0`,
		"prefixes": `
			+ a/one x/a/
			+ a/two x/ab/
			+ b/three x/a/b/
			+ b/four x/
			+ b/five x/c/
			= a/two Accepted 1
			= b/three BucketTaken 0 spec.prefix: the prefix "a/b/" in the bucket x overlaps the prefix "a/", which the tenant a_one
			= b/four BucketTaken 0 overlaps the prefix
			= b/five Accepted 1`,
		"folders": `
			+ a/one x/a/
			+ a/two y/ x/a/in/
			+ a/three z/ x/a/in/
			+ b/four w/ x/a/in/
			+ b/five x/a/in/
			= a/two Accepted 1
			= a/three Accepted 1
			= b/four BucketTaken 0 spec.folders./0: the prefix "a/in/" in the bucket x overlaps
			= b/five BucketTaken 0 overlaps`,
	} {
		t.Run(name, func(t *testing.T) {
			f := newFakeCluster(t, allowAll+"\ntenants: {file: {hosts: [file.example], bucket: files, users: {u: {disabled: true}}}}")
			for line := range strings.Lines(strings.ReplaceAll(history, "\t", "")) {
				if words := strings.Fields(line); len(words) > 0 {
					f.step(words)
				}
			}
		})
	}
}

// TestClaimsWithCredentials tests that only tenants with the same credentials keep places from each other. Otherwise a
// tenant with invalid credentials could keep all buckets from its neighbors.
func TestClaimsWithCredentials(t *testing.T) {
	f := newFakeCluster(t, allowAll+"\ntenants: {file: {bucket: files, users: {u: {disabled: true}}}}")
	own := func(id, bucket, secret string) {
		namespace, _, _ := strings.Cut(id, "/")
		f.secret(namespace, "s3-"+secret, "secret_access_key", secret)
		f.tenant(id, "{bucket: "+bucket+", s3: {access_key_id: id, secret_access_key_secret: {name: s3-"+secret+"}}}")
	}
	own("a/guess", "data", "wrong")
	own("a/file", "files", "wrong")
	f.tenant("b/server", "{bucket: data}")
	own("c/first", "data", "right")
	own("d/second", "data", "right")
	f.run()
	for _, id := range []string{"a/guess", "a/file", "b/server", "c/first"} {
		f.want("FTPTenant/"+id, ResourceAccepted, 1, "")
	}
	f.want("FTPTenant/d/second", ResourceBucketTaken, 0, "overlaps the prefix \"\", which the tenant c_first has already")
}

// step performs a line of a history.
func (f *fakeCluster) step(words []string) {
	f.t.Helper()
	id := ""
	if len(words) > 1 {
		id = string(TenantResource) + "/" + words[1]
	}
	switch words[0] {
	case "+":
		hosts, folders, place := []string{}, []string{}, ""
		for _, word := range words[2:] {
			bucket, prefix, isPlace := strings.Cut(word, "/")
			where := "bucket: " + bucket + "-data, prefix: '" + prefix + "'"
			if bucket == "files" {
				where = "bucket: files, prefix: '" + prefix + "'"
			}
			where = strings.ReplaceAll(where, ", prefix: ''", "")
			switch {
			case !isPlace:
				hosts = append(hosts, word)
			case place == "":
				place = where
			default:
				folders = append(folders, "/"+string(rune('0'+len(folders)))+": {"+where+"}")
			}
		}
		f.tenant(words[1], "{hosts: ["+strings.Join(hosts, ", ")+"], folders: {"+strings.Join(folders, ", ")+"}, "+place+"}")
	case "-":
		delete(f.resources, id)
	case "status":
		f.run()
		f.writeStatus()
	case "restart":
		f.restart()
	case "restore":
		f.restore()
	case "same":
		f.stopped = true
	case "=":
		f.run()
		f.want(id, ResourceReason(words[2]), int64(words[3][0]-'0'), strings.ReplaceAll(strings.Join(words[4:], " "), " x overlaps", " x-data overlaps"))
	default:
		f.t.Fatalf("unknown step %q", words)
	}
}

// restore creates all resources again in the opposite order of their age, with their status, as from a backup.
func (f *fakeCluster) restore() {
	newest := f.clock.Add(time.Hour)
	for id, r := range f.resources {
		next := *r
		next.UID, next.Created, next.Generation = r.UID+"-restored", newest.Add(-r.Created.Sub(f.clock)), 1
		f.resources[id] = &next
	}
}

// Users of a tenant have different names, and none has the login name of another tenant.
func TestUserClaims(t *testing.T) {
	f := newFakeCluster(t, allowAll+`
tenants: {acme: {bucket: files, users: {u: {disabled: true}, dan@team-a_acme: {disabled: true}}}}`)
	f.tenant("team-a/acme", "{bucket: one}")
	f.tenant("team-a/other", "{bucket: two}")
	f.tenant("team-b/beta", "{bucket: three}")
	f.user("team-a/alice", "acme")
	f.user("team-a/twin", "acme", "name: alice")
	f.user("team-a/elsewhere", "other", "name: alice")
	f.user("team-b/alice", "beta")
	f.user("team-b/u", "beta")
	f.user("team-b/mail", "beta", "name: a@example.com")
	f.user("team-b/spoof", "beta", "name: alice@team-a_acme")
	f.user("team-b/spoof-file", "beta", "name: u@acme")
	f.user("team-b/spoof-own", "beta", "name: x@team-b_beta")
	f.user("team-a/dan", "acme")
	f.user("team-b/foreign", "acme")
	f.run()
	for _, id := range []string{"team-a/alice", "team-a/elsewhere", "team-b/alice", "team-b/u", "team-b/mail"} {
		f.want("FTPUser/"+id, ResourceAccepted, 1, "")
	}
	f.want("FTPUser/team-a/twin", ResourceNameTaken, 0,
		`spec.name: the FTPUser team-a/alice has the name "alice" in the tenant team-a_acme already: rename one of them`)
	f.want("FTPUser/team-b/spoof", ResourceNameTaken, 0, "is the login name of users of the tenant team-a_acme")
	f.want("FTPUser/team-b/spoof-file", ResourceNameTaken, 0, "is the login name of users of the tenant acme")
	f.want("FTPUser/team-b/spoof-own", ResourceNameTaken, 0, "is the login name of users of the tenant team-b_beta")
	f.want("FTPUser/team-a/dan", ResourceNameTaken, 0, "dan@team-a_acme is also the name of a user of the tenant acme")
	f.want("FTPUser/team-b/foreign", ResourceTenantNotFound, 0, `the FTPTenant "acme" does not exist in the namespace team-b`)
	f.writeStatus()

	// The older one takes the name that the other one has accepted only if it is released.
	f.user("team-a/alice", "acme", "name: al")
	f.run()
	f.want(alice, ResourceAccepted, 2, "")
	f.want("FTPUser/team-a/twin", ResourceAccepted, 1, "")
	f.writeStatus()
	f.user("team-a/alice", "acme")
	f.run()
	f.want(alice, ResourceNameTaken, 2, "team-a/twin")
	if f.merged.Tenants["team-a_acme"].Users["al"] == nil {
		t.Error("the last accepted name is not in use")
	}
	// The name of a tenant that is created later ends the user who had it in a name.
	f.user("team-b/early", "beta", "name: x@team-b_gamma")
	f.run()
	f.want("FTPUser/team-b/early", ResourceAccepted, 1, "")
	f.tenant("team-b/gamma", "{bucket: four}")
	f.run()
	f.want("FTPUser/team-b/early", ResourceNameTaken, 0, "team-b_gamma")
	f.configure(allowAll + "\ntenants: {team-b_gamma: {bucket: files, users: {u: {disabled: true}}}}")
	f.run()
	f.want("FTPTenant/team-b/gamma", ResourceNameTaken, 0, "the configuration of the server has a tenant team-b_gamma too")
	f.tenant("team-b/"+strings.Repeat("x", 60), "{bucket: five}")
	f.run()
	f.want("FTPTenant/team-b/"+strings.Repeat("x", 60), ResourceInvalid, 0, "is longer than 63 characters: choose a shorter name")
}
