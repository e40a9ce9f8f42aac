package main

import (
	"context"
	"fmt"
	"path"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// attackerName is a second user of babelftp with the password of the first one.
const attackerName = "attacker"

// victims measures how much slower small uploads of one user become while another user keeps sessions busy,
// with one kind of work at a time and with all kinds. It also measures the same load directly on S3.
func victims(sessions, files int) []work {
	ofS3 := []activity{{"uploads", (*attack).upload}, {"downloads", (*attack).download}, {"listings", (*attack).list}}
	ofFTP := []activity{{"wrong passwords", (*attack).guess}, {"renames", (*attack).rename},
		{"stalled uploads", (*attack).stall}}
	var works []work
	for _, one := range ofS3 {
		works = append(works, victim(1, files, true, one), victim(sessions, files, true, one))
	}
	for _, one := range ofFTP {
		works = append(works, victim(sessions, files, false, one))
	}
	return append(works, victim(sessions, files, false, append(ofS3, ofFTP...)...))
}

// victim measures the slowdown of the victim during some kinds of work, as a ratio within one run. The
// server, S3 and the attacker share the processors of the machine, so the attacker also slows down the victim
// outside of the server. The row with one session of raw S3 shows this effect.
func victim(sessions, files int, withS3 bool, do ...activity) work {
	what, by := "all of these", strconv.Itoa(sessions)+" sessions"
	if len(do) == 1 {
		what = do[0].name
	}
	if sessions == 1 {
		by = "1 session"
	}
	name := fmt.Sprintf("victim next to %s by %s", what, by)
	return work{name, func(ctx context.Context, j *job) error {
		attacker := j.contender.targets[direct]
		switch t := attacker.(type) {
		case *rawS3:
			if !withS3 {
				return nil
			}
		case *ftpServer:
			if j.contender.own == nil { // needs a second user
				return nil
			}
			other := *t
			other.user = attackerName
			attacker = &other
		}
		s, err := j.open(ctx, direct)
		if err != nil {
			return err
		}
		defer s.close()
		dir := j.newName()
		defer j.remove(ctx, dir+"/")
		store := func(kind string) (float64, error) {
			begin := time.Now()
			for i := range files {
				if err := s.store(ctx, path.Join(dir, kind+strconv.Itoa(i)), 4<<10); err != nil {
					return 0, err
				}
			}
			return perSecond(float64(files), begin), nil
		}
		alone, err := store("alone")
		if err != nil {
			return err
		}
		a := &attack{job: j, target: attacker, dir: j.newName()}
		a.ctx, a.cancel = context.WithCancel(ctx)
		defer j.remove(ctx, a.dir+"/")
		defer a.stop()
		if err := a.start(sessions, do); err != nil {
			return err
		}
		before := a.done.Load()
		beside, err := store("beside")
		if err != nil {
			return err
		}
		fmt.Fprintf(j.log, "the attacker has done %d operations\n", a.done.Load()-before)
		j.report(amount(name, "ratio"), beside/alone)
		return nil
	}}
}

// An attack runs the sessions of an attacker.
type attack struct {
	ctx    context.Context
	cancel context.CancelFunc
	job    *job
	target target // logs in as the attacker
	dir    string

	done    atomic.Int64 // number of operations
	stopped atomic.Bool
	running sync.WaitGroup
	mu      sync.Mutex
	open    []func() // closes resources of the sessions
}

// The files of an attack.
const (
	attackFile = 1 << 20
	attackTree = 200 // files in a directory that is renamed and listed
)

// start starts the attack. It returns when each session has done its first operation.
func (a *attack) start(sessions int, do []activity) error {
	raw := rawSession{&rawS3{client: a.job.client, bucket: bucket, content: a.job.content}}
	if err := raw.store(a.ctx, path.Join(a.dir, "file"), attackFile); err != nil {
		return err
	}
	for i := range attackTree {
		if err := raw.store(a.ctx, path.Join(a.dir, "tree", strconv.Itoa(i)), 1); err != nil {
			return err
		}
	}
	var began sync.WaitGroup
	for i := range sessions {
		began.Add(1)
		a.running.Go(func() {
			first := sync.OnceFunc(began.Done)
			defer first()
			for !a.stopped.Load() {
				a.session(do[i%len(do)].do, i, first)
			}
		})
	}
	began.Wait()
	return nil
}

// An activity is the work that a session of an attack repeats. It calls began before an operation that may block.
type activity struct {
	name string
	do   func(a *attack, s session, i int, began func()) error
}

// session repeats an activity in one session until it fails, because limits of the server may refuse it.
func (a *attack) session(do func(*attack, session, int, func()) error, i int, first func()) {
	s, err := a.target.open(a.ctx)
	if err != nil {
		first()
		return
	}
	a.keep(s.close)
	defer s.close()
	for !a.stopped.Load() {
		if err := do(a, s, i, first); err != nil {
			first()
			return
		}
		a.done.Add(1)
		first()
	}
}

// keep registers a function that stop calls.
func (a *attack) keep(closing func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.open = append(a.open, closing)
	if a.stopped.Load() {
		closing()
	}
}

func (a *attack) stop() {
	a.stopped.Store(true)
	a.cancel()
	a.mu.Lock()
	for _, closing := range a.open {
		closing()
	}
	a.mu.Unlock()
	a.running.Wait()
}

func (a *attack) upload(s session, i int, _ func()) error {
	return s.store(a.ctx, path.Join(a.dir, "up-"+strconv.Itoa(i)), attackFile)
}

func (a *attack) download(s session, _ int, _ func()) error {
	return s.fetch(a.ctx, path.Join(a.dir, "file"), attackFile)
}

func (a *attack) list(s session, _ int, _ func()) error {
	_, _, err := s.list(a.ctx, a.dir)
	return err
}

// guess tries a password in a new connection.
func (a *attack) guess(_ session, _ int, began func()) error {
	began() // the server delays the reply, although the password was checked
	wrong := *a.target.(*ftpServer)
	wrong.password = "wrong"
	if s, err := wrong.login(a.ctx); err == nil {
		s.close()
	}
	return nil
}

// rename moves the directory back and forth. Only one of the sessions succeeds each time.
func (a *attack) rename(s session, i int, began func()) error {
	began() // renames of the same directory wait for each other
	root := a.target.(*ftpServer).dir
	from, to := path.Join(root, a.dir, "tree"), path.Join(root, a.dir, "moved")
	if i%2 == 0 {
		from, to = to, from
	}
	for _, line := range []string{"RNFR " + from, "RNTO " + to} {
		if reply, err := s.(*ftpSession).Send(line); err != nil || strings.HasPrefix(reply, "421") {
			return fmt.Errorf("%s: %w", reply, err)
		}
	}
	return nil
}

// stall sends less than a part and waits until the server or the attack ends the transfer.
func (a *attack) stall(s session, i int, began func()) error {
	ftp := s.(*ftpSession)
	conn, err := ftp.data("STOR " + path.Join(a.target.(*ftpServer).dir, a.dir, "half-"+strconv.Itoa(i)))
	if err != nil {
		return err
	}
	defer conn.Close()
	if err := a.job.content.send(conn, attackFile); err != nil {
		return err
	}
	a.keep(func() { _ = conn.Close() })
	began()
	return ftp.completed()
}
