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

	"github.com/babelftp/babelftp/internal/acceptance/linearizability"
	"github.com/babelftp/babelftp/internal/testkit/must"
	"github.com/babelftp/babelftp/internal/testkit/s3test"
)

// The flags of TestLinearizable.
var (
	historiesTime = flag.Duration(
		"histories.time", 3*time.Second, "how long each part of TestLinearizable makes histories")
	historiesSeed = flag.Uint64(
		"histories.seed", 1, "of TestLinearizable; a seed decides what clients and S3 do, but not when")
	historiesKeep = flag.String(
		"histories.keep", "", "folder for pages that show the histories that TestLinearizable cannot explain")
	historiesServers = flag.String("histories.servers", "minio", "S3 servers of TestLinearizable: minio, versitygw")
	historiesParts   = flag.String(
		"histories.parts", "clean,faults,deny,large,kills,resume", "parts of TestLinearizable")
	historiesTeams = flag.Int(
		"histories.teams", 4, "how many histories TestLinearizable makes at a time, on each S3 server")
	historiesBinary = flag.String(
		"histories.binary", "", "program that TestLinearizable judges in place of one that it builds")
	historiesGoOn = flag.Bool(
		"histories.go-on", false, "let TestLinearizable go on after a history that it cannot explain")
)

const (
	// judgedReplicas is the number of replicas that serve clients.
	judgedReplicas = 2

	// judgedSweeper is the number of the replica that has no clients, and removes abandoned uploads.
	judgedSweeper = judgedReplicas

	// sweptAfter is the age of uploads to remove, and the time between two sweeps. It is the minimum that the
	// program accepts. The other replicas remove uploads after a day.
	sweptAfter = 10 * time.Second
)

// judgedSkews says how far the clock of S3 is ahead of the clock of each replica. S3 servers check signatures
// against their own clocks, which are correct.
var judgedSkews = [...]time.Duration{-4 * time.Minute, 3 * time.Minute, 30 * time.Second}

// largePart is the part size of the replicas.
const largePart = 5 << 20

// judgedPatience limits the time for checking a history.
const judgedPatience = 20 * time.Second

// shrinkPatience limits the time for shrinking an unexplained history.
const shrinkPatience = time.Minute

// judgedConfiguration is the configuration of each replica. Two tenants share a bucket: open allows files to be
// overwritten, denying does not. The buckets of the others keep versions if the server supports it. The model
// covers interrupted uploads only for the resuming tenants, so the others discard theirs.
const judgedConfiguration = `
listen: "127.0.0.1:0"
metrics_listen: ""
admin_socket: ""
limits: {address: {sessions: 0}, login_timeout: 5m}
s3:
  endpoint: %[1]q
  region: %[2]q
  path_style: true
  access_key_id: %[3]q
  secret_access_key_file: secret
part_size: %[8]dMiB
abandoned_uploads: %[9]s
tenants:
  open:
    hosts: [open.example]
    bucket: %[4]q
    prefix: open/
    resume: discard
%[10]s
    folders: {/elsewhere: {bucket: %[11]q, prefix: open/}}
    users: {alice: {password_hash: %[5]q}}
  denying:
    hosts: [denying.example]
    bucket: %[4]q
    prefix: denying/
    resume: discard
    folders: {/elsewhere: {bucket: %[11]q, prefix: denying/}}
    overwrite: deny
    users: {alice: {password_hash: %[5]q}}
  resuming:
    hosts: [resuming.example]
    bucket: %[4]q
    prefix: resuming/
    resume: keep
    users: &keepers
      keeper-0: {password_hash: %[5]q}
      keeper-1: {password_hash: %[5]q}
      keeper-2: {password_hash: %[5]q}
      keeper-3: {password_hash: %[5]q}
      keeper-4: {password_hash: %[5]q}
      keeper-5: {password_hash: %[5]q}
  resuming-versions:
    hosts: [resuming-versions.example]
    bucket: %[6]q
    prefix: resuming/
    resume: keep
    users: *keepers
  beside:
    hosts: [beside.example]
    bucket: %[4]q
    prefix: resuming/
    resume: discard
    users: {alice: {password_hash: %[5]q}}
  beside-versions:
    hosts: [beside-versions.example]
    bucket: %[6]q
    prefix: resuming/
    resume: discard
    users: {alice: {password_hash: %[5]q}}
  versions:
    hosts: [versions.example]
    bucket: %[6]q
    resume: discard
    folders: {/elsewhere: {bucket: %[7]q, prefix: away/}}
    users: {alice: {password_hash: %[5]q}}
  locked:
    hosts: [locked.example]
    bucket: %[7]q
    resume: discard
    folders: {/elsewhere: {bucket: %[6]q, prefix: away/}}
    users: {alice: {password_hash: %[5]q}}
`

// judgedPassword has a cheap hash, because clients log in often.
const judgedPassword = "password"

// A judgedReplica is a server process that the test kills and freezes.
type judgedReplica struct {
	t       *testing.T
	file    string // its configuration
	text    func(partSize int) string
	size    int // part size in MiB
	link    *linearizability.Link
	process *process
	address atomic.Pointer[string]
}

// judgedBuckets names the buckets of the replicas.
type judgedBuckets struct{ plain, other, versions, locked string }

// newJudgedReplica starts a replica behind a proxy.
func newJudgedReplica(
	t *testing.T, number int, storage *s3test.Server, buckets judgedBuckets, hash string,
	faults *linearizability.Faults,
) *judgedReplica {
	t.Helper()
	proxy := s3test.StartProxy(t, storage)
	link := faults.NewLink(number, proxy, judgedSkews[number])
	dir := t.TempDir()
	r := &judgedReplica{t: t, file: filepath.Join(dir, "babelftp.yaml"), link: link, size: smallestPart + number}
	abandoned := 24 * time.Hour
	if number == judgedSweeper {
		abandoned = sweptAfter
	}
	r.text = func(size int) string {
		quota := ""
		if size%2 == 0 {
			quota = "    quota: 1TiB" // counted but never reached
		}
		return fmt.Sprintf(
			judgedConfiguration, proxy.Server().Endpoint, storage.Region, storage.AccessKeyID, buckets.plain, hash,
			buckets.versions, buckets.locked, size, abandoned, quota, buckets.other)
	}
	must.WriteFile(t, filepath.Join(dir, "secret"), storage.SecretAccessKey)
	r.configure()
	r.start()
	return r
}

// smallestPart is the size of the parts of the first replica, in MiB. The other one has larger parts, and a reload
// makes them larger still.
const smallestPart = 5

// configure writes the configuration.
func (r *judgedReplica) configure() {
	if err := os.WriteFile(r.file, []byte(r.text(r.size)), 0o600); err != nil {
		r.t.Error(err)
	}
}

// reload changes the part size and toggles the quota during sessions.
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

// trouble kills and restarts the process, freezes it, cuts it off from S3, or reloads its configuration. The clock
// of S3 may jump ahead at the same time. To S3 and to the other replicas, this replica then seems silent for longer
// than it keeps its uploads. A jump alone looks as if the machine of all replicas was suspended.
func (r *judgedReplica) trouble(ctx context.Context, random *rand.Rand, clock *linearizability.Clock) {
	const shortest, longest, silence = 1200 * time.Millisecond, 4 * time.Second, 150 * time.Second
	var end func()
	switch random.IntN(5) {
	case 0:
		r.reload()
		return
	case 1:
		clock.Jump(silence)
		return
	case 2:
		r.process.signal(syscall.SIGSTOP)
		end = func() { r.process.signal(syscall.SIGCONT) }
	case 3:
		end = r.link.CutOff()
	default:
		r.process.kill()
		end = func() {
			r.process.mustBeClean()
			r.start()
		}
	}
	if random.IntN(2) == 0 {
		clock.Jump(silence)
	}
	select {
	case <-time.After(shortest + time.Duration(random.Int64N(int64(longest-shortest)))):
	case <-ctx.Done():
	}
	end()
}

// TestLinearizable lets clients work on a few names through two replicas and checks that one order of all commands
// explains every reply. The part clean has no faults and shows that the check has no false positives. In the other
// parts a proxy in front of S3 drops responses and refuses or delays requests. In deny, files are not overwritten.
// In large, some files have more than one part. In kills, replicas are also killed, frozen, cut off from S3 and
// reloaded. In resume, the same happens while clients resume uploads.
//
// Some renames go between two buckets, which are directories of one tenant.
//
// The clocks of S3 and of the replicas differ by minutes. The clock of S3 jumps ahead while a replica is frozen or
// cut off, so that the uploads of all replicas count as abandoned.
func TestLinearizable(t *testing.T) {
	t.Parallel()
	for _, server := range strings.Split(*historiesServers, ",") {
		t.Run(server, func(t *testing.T) {
			t.Parallel()
			storage := s3test.Start(t, server)
			hash, err := bcrypt.GenerateFromPassword([]byte(judgedPassword), bcrypt.MinCost)
			must.OK(t, err)
			const behind = 12 * time.Hour // room for jumps
			clock := linearizability.NewClock(behind)
			j := &judge{faults: &linearizability.Faults{
				Serialize: server == "versitygw", Clock: clock,
			}, excuse: server == "minio"}
			buckets := judgedBuckets{plain: storage.Bucket(t), other: storage.Bucket(t)}
			if server == "minio" {
				j.minio = true
				buckets.versions, buckets.locked = storage.VersionedBucket(t), storage.LockedBucket(t)
			} else {
				buckets.versions, buckets.locked = storage.Bucket(t), storage.Bucket(t)
			}
			for number := range judgedReplicas {
				j.replicas = append(j.replicas, newJudgedReplica(t, number, storage, buckets, string(hash), j.faults))
			}
			sweeper := newJudgedReplica(t, judgedSweeper, storage, buckets, string(hash), j.faults)
			for _, part := range strings.Split(*historiesParts, ",") {
				t.Run(part, func(t *testing.T) { j.run(t, part) })
			}
			for _, r := range append(j.replicas, sweeper) {
				r.process.mustBeClean()
			}
		})
	}
}

// A judge plays histories on the replicas of one bucket.
type judge struct {
	replicas []*judgedReplica
	faults   *linearizability.Faults
	excuse   bool
	minio    bool // the server is MinIO, and the buckets of two tenants keep versions
	teams    int
}

// A tally collects the results of one part of the test.
type tally struct {
	calm bool // no faults, only other clients

	mu                           sync.Mutex
	explained, undecided, failed int
	faults                       int
	replies                      map[string]int
	commands, refused            map[string]int // by verb
}

// run makes and judges histories of one kind.
func (j *judge) run(t *testing.T, part string) {
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	seen := &tally{calm: part == "clean", replies: map[string]int{}, commands: map[string]int{},
		refused: map[string]int{}}
	deadline := time.Now().Add(*historiesTime)
	var teams, troubles sync.WaitGroup
	if part != "clean" {
		defer j.faults.BeginRecords(*historiesSeed)()
	}
	for n := range *historiesTeams {
		j.teams++
		team := &linearizability.Team{
			Number: j.teams, User: "alice@open", Password: judgedPassword, Faults: j.faults, Excuse: j.excuse,
			Elsewhere: part != "resume", Steady: part != "kills" && part != "resume",
			Rules: linearizability.Rules{Ghosts: j.minio},
		}
		switch {
		case part == "deny" || part != "faults" && n%4 == 2:
			team.User, team.Rules.Deny = "alice@denying", true
		case n%4 == 3:
			team.User = "alice@" + []string{"versions", "locked"}[j.teams/(*historiesTeams)%2]
			team.Rules.Versions = j.minio
		}
		if part == "resume" {
			team.User, team.Keeper = "alice@beside", "keeper-%d@resuming"
			team.Rules.Deny, team.Rules.Versions = false, false
			if n%2 == 1 {
				team.User, team.Keeper, team.Rules.Versions = "alice@beside-versions", "keeper-%d@resuming-versions",
					j.minio
			}
		}
		if part == "large" {
			team.Large = strings.Repeat("x", largePart)
		}
		for _, r := range j.replicas {
			team.Replicas = append(team.Replicas, func() string { return *r.address.Load() })
		}
		teams.Go(func() {
			defer team.Close()
			for seed := *historiesSeed*1_000_000 + uint64(n)*10_000; time.Now().Before(deadline) &&
				(*historiesGoOn || !seen.hasFailed()); seed++ {
				record, err := team.Play(ctx, seed, part != "clean")
				if err != nil {
					t.Errorf("seed %d: %v", seed, err)
					return
				}
				seen.add(t, team.Rules, record)
			}
		})
	}
	if part == "kills" || part == "resume" {
		troubles.Go(func() {
			const longest = 3 * time.Second
			random := rand.New(rand.NewPCG(*historiesSeed, 0))
			for {
				select {
				case <-time.After(time.Duration(random.Int64N(int64(longest)))):
					j.replicas[random.IntN(len(j.replicas))].trouble(ctx, random, j.faults.Clock)
				case <-ctx.Done():
					return
				}
			}
		})
	}
	teams.Wait()
	stop()
	troubles.Wait()
	t.Logf(
		"%d histories explained, %d not explained, %d undecided, %d faults, replies: %v", seen.explained, seen.failed,
		seen.undecided, seen.faults, seen.replies)
	if seen.explained == 0 {
		t.Error("no history was explained")
	}
	seen.wantService(t)
}

// wantService checks that most commands are served, because a server that always asks clients to try again would
// satisfy the model. With faults, about 4 % of all commands are refused, and up to 25 % of the commands with one
// verb.
func (s *tally) wantService(t *testing.T) {
	const enough, most, mostOfVerb = 50, 15, 60 // minimum sample, and percentages
	commands, refused := 0, 0
	for verb, n := range s.commands {
		if commands, refused = commands+n, refused+s.refused[verb]; n >= enough && s.refused[verb]*100 > mostOfVerb*n {
			t.Errorf("%d of %d commands %s were refused", s.refused[verb], n, verb)
		}
	}
	t.Logf("%d of %d commands were refused for now", refused, commands)
	if commands >= enough && refused*100 > most*commands {
		t.Errorf("%d of %d commands were refused", refused, commands)
	}
}

// hasFailed reports whether any history was not explained.
func (s *tally) hasFailed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.failed > 0
}

// add checks a history and records the result.
func (s *tally) add(t *testing.T, rules linearizability.Rules, record *linearizability.Record) {
	verdict := rules.Check(record.History, judgedPatience)
	s.mu.Lock()
	s.faults += record.Faults
	record.History.Count(s.replies)
	for _, c := range record.History {
		s.commands[c.Verb]++
		if c.Refused() {
			s.refused[c.Verb]++
		}
	}
	switch verdict {
	case linearizability.Explained:
		s.explained++
	case linearizability.Undecided:
		s.undecided++
	default:
		s.failed++
	}
	s.mu.Unlock()
	if refusals := record.History.UnexplainedRefusals(); s.calm && len(refusals) > 0 {
		t.Errorf(
			"seed %d: commands refused without a reason:\n%v\nall commands:\n%v\nrequests to S3:\n%s", record.Seed, refusals,
			record.History, record.Log)
	}
	if verdict != linearizability.Unexplained {
		return
	}
	t.Errorf(
		"seed %d: no order of the commands explains, under %+v, the replies of\n%v\nall commands:\n%v\nrequests to S3:\n%s",
		record.Seed, rules, rules.Shrink(record.History, shrinkPatience), record.History, record.Log)
	if *historiesKeep == "" {
		return
	}
	page := filepath.Join(
		*historiesKeep, fmt.Sprintf("%s-%d.html", strings.ReplaceAll(t.Name(), "/", "-"), record.Seed))
	if err := rules.Visualize(record.History, judgedPatience, page); err != nil {
		t.Error(err)
		return
	}
	t.Logf("%s shows it", page)
}
