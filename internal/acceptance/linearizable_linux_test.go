package acceptance_test

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/crypto/bcrypt"

	"github.com/babelftp/babelftp/internal/linearizability"
	"github.com/babelftp/babelftp/internal/s3test"
)

// The flags of TestLinearizable.
var (
	historiesTime    = flag.Duration("histories.time", 5*time.Second, "how long each part of TestLinearizable makes histories")
	historiesSeed    = flag.Uint64("histories.seed", 1, "of TestLinearizable; a seed decides what clients and S3 do, but not when")
	historiesKeep    = flag.String("histories.keep", "", "folder for pages that show the histories that TestLinearizable cannot explain")
	historiesServers = flag.String("histories.servers", "minio,versitygw", "S3 servers of TestLinearizable")
	historiesParts   = flag.String("histories.parts", "clean,faults,deny,large,kills", "parts of TestLinearizable")
	historiesTeams   = flag.Int("histories.teams", 4, "how many histories TestLinearizable makes at a time, on each S3 server")
	historiesBinary  = flag.String("histories.binary", "", "program that TestLinearizable judges in place of one that it builds")
	historiesGoOn    = flag.Bool("histories.go-on", false, "let TestLinearizable go on after a history that it cannot explain")
)

// judgedReplicas is how many replicas serve the bucket.
const judgedReplicas = 2

// largePart is the size of a part of the replicas.
const largePart = 5 << 20

// judgedPatience is how long a history is judged.
const judgedPatience = 20 * time.Second

// judgedConfiguration is that of each replica. Two tenants share a bucket: open replaces files, denying does not. The buckets
// of the others keep versions, where the server can.
const judgedConfiguration = `
listen: "127.0.0.1:0"
limits: {sessions_per_address: 0, login_timeout: 5m}
s3:
  endpoint: %[1]q
  region: %[2]q
  path_style: true
  access_key_id: %[3]q
  secret_access_key_file: secret
part_size: %[8]dMiB
commit_delay: 1ms
tenants:
  open:
    hosts: [open.example]
    bucket: %[4]q
    prefix: open/
    users: {alice: {password_hash: %[5]q}}
  denying:
    hosts: [denying.example]
    bucket: %[4]q
    prefix: denying/
    overwrite: deny
    users: {alice: {password_hash: %[5]q}}
  versions:
    hosts: [versions.example]
    bucket: %[6]q
    users: {alice: {password_hash: %[5]q}}
  locked:
    hosts: [locked.example]
    bucket: %[7]q
    users: {alice: {password_hash: %[5]q}}
`

// judgedPassword has a cheap hash, because clients log in again and again.
const judgedPassword = "password"

// A judgedReplica is a process that serves the bucket. It may be killed and frozen.
type judgedReplica struct {
	t       *testing.T
	file    string // its configuration
	text    func(partSize int) string
	size    int // of a part, in MiB
	process *process
	address atomic.Pointer[string]
}

// judgedBuckets are those of the replicas.
type judgedBuckets struct{ plain, versions, locked string }

// newJudgedReplica starts a replica behind a proxy.
func newJudgedReplica(
	t *testing.T, number int, storage *s3test.Server, buckets judgedBuckets, hash string, faults *linearizability.Faults,
) *judgedReplica {
	t.Helper()
	proxy, err := faults.NewProxy(number, storage.Endpoint, storage.HTTPClient.Transport)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = proxy.Close() })
	dir := t.TempDir()
	r := &judgedReplica{t: t, file: filepath.Join(dir, "babelftp.yaml"), size: smallestPart + number}
	r.text = func(size int) string {
		return fmt.Sprintf(judgedConfiguration, proxy.Endpoint(), storage.Region, storage.AccessKeyID, buckets.plain, hash,
			buckets.versions, buckets.locked, size)
	}
	if err := os.WriteFile(filepath.Join(dir, "secret"), []byte(storage.SecretAccessKey), 0o600); err != nil {
		t.Fatal(err)
	}
	r.configure()
	r.start()
	return r
}

// smallestPart is the size of the parts of the first replica, in MiB. The other one has larger parts, and a reload makes them larger still.
const smallestPart = 5

// configure writes the configuration.
func (r *judgedReplica) configure() {
	if err := os.WriteFile(r.file, []byte(r.text(r.size)), 0o600); err != nil {
		r.t.Error(err)
	}
}

// reload changes the size of the parts while there are sessions.
func (r *judgedReplica) reload() {
	const sizes = 3
	r.size = smallestPart + (r.size-smallestPart+1)%sizes
	r.configure()
	r.process.signal(syscall.SIGHUP)
}

// start starts the process.
func (r *judgedReplica) start() {
	program := *historiesBinary
	if program == "" {
		program = binary(r.t)
	}
	p := launch(r.t, program, "serve", "--config", r.file)
	p.expect(p.stderr, `msg=serving`)
	address := p.expect(p.stderr, `msg=listening key=listen address=(\S+)`)[1]
	r.process = p
	r.address.Store(&address)
}

// trouble kills the process and starts it again, freezes it for a while, or reloads its configuration.
func (r *judgedReplica) trouble(ctx context.Context, random *rand.Rand) {
	const longest = 4 * time.Second
	freeze := false
	switch random.IntN(3) {
	case 0:
		r.reload()
		return
	case 1:
		freeze = true
		r.process.signal(syscall.SIGSTOP)
	default:
		r.process.kill()
	}
	select {
	case <-time.After(time.Duration(random.Int64N(int64(longest)))):
	case <-ctx.Done():
	}
	if freeze {
		r.process.signal(syscall.SIGCONT)
	} else {
		r.process.mustBeClean()
		r.start()
	}
}

// TestLinearizable lets clients work on few names through two replicas, and judges their replies. There must be one order of all commands that explains each
// reply. The part clean has no faults, so that it shows that the judge does not cry wolf. In the others a proxy before S3 loses answers, refuses and delays
// requests. In deny files are not replaced. In large some have more than one part. In kills the replicas are killed and frozen too.
func TestLinearizable(t *testing.T) {
	t.Parallel()
	for _, server := range strings.Split(*historiesServers, ",") {
		t.Run(server, func(t *testing.T) {
			t.Parallel()
			storage := s3test.Start(t, server)
			hash, err := bcrypt.GenerateFromPassword([]byte(judgedPassword), bcrypt.MinCost)
			if err != nil {
				t.Fatal(err)
			}
			j := &judge{faults: &linearizability.Faults{Serialize: server == "versitygw"}, excuse: server == "minio"}
			buckets := judgedBuckets{plain: storage.Bucket(t)}
			if server == "minio" {
				j.versions = true
				buckets.versions, buckets.locked = storage.VersionedBucket(t), storage.LockedBucket(t)
			} else {
				buckets.versions, buckets.locked = storage.Bucket(t), storage.Bucket(t)
			}
			for number := range judgedReplicas {
				j.replicas = append(j.replicas, newJudgedReplica(t, number, storage, buckets, string(hash), j.faults))
			}
			for _, part := range strings.Split(*historiesParts, ",") {
				t.Run(part, func(t *testing.T) { j.run(t, part) })
			}
			for _, r := range j.replicas {
				r.process.mustBeClean()
			}
		})
	}
}

// A judge makes histories on the replicas of one bucket.
type judge struct {
	replicas []*judgedReplica
	faults   *linearizability.Faults
	excuse   bool
	versions bool // there are buckets that keep them
	teams    int
}

// A judgement is what a part of the test has come to.
type judgement struct {
	mu                           sync.Mutex
	explained, undecided, failed int
	faults                       int
	replies                      map[string]int
}

// run makes and judges histories of one kind.
func (j *judge) run(t *testing.T, part string) {
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	seen := &judgement{replies: map[string]int{}}
	deadline := time.Now().Add(*historiesTime)
	var teams, troubles sync.WaitGroup
	for n := range *historiesTeams {
		j.teams++
		team := &linearizability.Team{
			Number: j.teams, User: "alice@open", Password: judgedPassword, Faults: j.faults, Excuse: j.excuse,
		}
		switch {
		case part == "deny" || part != "faults" && n%4 == 2:
			team.User, team.Rules.Deny = "alice@denying", true
		case n%4 == 3:
			team.User = "alice@" + []string{"versions", "locked"}[j.teams/(*historiesTeams)%2]
			team.Rules.Versions = j.versions
		}
		if part == "large" {
			team.Large = strings.Repeat("x", largePart)
		}
		for _, r := range j.replicas {
			team.Replicas = append(team.Replicas, func() string { return *r.address.Load() })
		}
		teams.Go(func() {
			defer team.Close()
			for seed := *historiesSeed*1_000_000 + uint64(n)*10_000; time.Now().Before(deadline) && (*historiesGoOn || !seen.hasFailed()); seed++ {
				record, err := team.Play(ctx, seed, part != "clean")
				if err != nil {
					t.Errorf("seed %d: %v", seed, err)
					return
				}
				seen.add(t, team.Rules, record)
			}
		})
	}
	if part == "kills" {
		troubles.Go(func() {
			const longest = 3 * time.Second
			random := rand.New(rand.NewPCG(*historiesSeed, 0))
			for {
				select {
				case <-time.After(time.Duration(random.Int64N(int64(longest)))):
					j.replicas[random.IntN(len(j.replicas))].trouble(ctx, random)
				case <-ctx.Done():
					return
				}
			}
		})
	}
	teams.Wait()
	stop()
	troubles.Wait()
	t.Logf("%d histories explained, %d not explained, %d undecided, %d faults, replies: %v", seen.explained, seen.failed, seen.undecided, seen.faults, seen.replies)
	if seen.explained == 0 {
		t.Error("no history was explained")
	}
}

// hasFailed tells whether a history was not explained.
func (s *judgement) hasFailed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.failed > 0
}

// add judges a history.
func (s *judgement) add(t *testing.T, rules linearizability.Rules, record *linearizability.Record) {
	verdict := rules.Check(record.History, judgedPatience)
	s.mu.Lock()
	s.faults += record.Faults
	record.History.Count(s.replies)
	switch verdict {
	case linearizability.Explained:
		s.explained++
	case linearizability.Undecided:
		s.undecided++
	default:
		s.failed++
	}
	s.mu.Unlock()
	if verdict != linearizability.Unexplained {
		return
	}
	t.Errorf("seed %d: no order of the commands explains the replies of\n%v\nall commands:\n%v\nrequests to S3:\n%s",
		record.Seed, rules.Shrink(record.History, judgedPatience), record.History, record.Log)
	if *historiesKeep == "" {
		return
	}
	page := filepath.Join(*historiesKeep, fmt.Sprintf("%s-%d.html", strings.ReplaceAll(t.Name(), "/", "-"), record.Seed))
	if err := rules.Visualize(record.History, judgedPatience, page); err != nil {
		t.Error(err)
		return
	}
	t.Logf("%s shows it", page)
}
