package main

import (
	"context"
	"fmt"
	"io"
	"path"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// attackerName is a further user of the server that the bench starts, with the password of the first one.
const attackerName = "attacker"

// victims measure what small uploads of one user lose while another user keeps so many sessions busy: with one kind of work each, and with all
// of them.
func victims(sessions, files int) []work {
	var works []work
	all := []operation{(*attack).upload, (*attack).download, (*attack).list, (*attack).guess, (*attack).rename, (*attack).stall}
	for _, of := range []struct {
		what string
		do   []operation
	}{
		{"upload", all[:1]}, {"download", all[1:2]}, {"list", all[2:3]}, {"guess passwords", all[3:4]}, {"rename", all[4:5]}, {"do not go on", all[5:]}, {"do all of it", all},
	} {
		works = append(works, victim(sessions, files, of.what, of.do))
	}
	return works
}

// victim measures what the victim loses while the sessions do some kinds of work. The ratio is of one run. The machine shares its processors
// among the server, S3 and the attacker, so the attacker slows the victim outside of the server too.
func victim(sessions, files int, what string, do []operation) work {
	name := fmt.Sprintf("victim: files of 4 KiB up, next to %d sessions of another user that %s", sessions, what)
	return work{name, func(ctx context.Context, j *job) error {
		server, ok := j.contender.targets[direct].(*ftpServer)
		if !ok || j.contender.own == nil {
			return nil
		}
		s, err := server.login(ctx)
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
		a := &attack{ctx: ctx, job: j, server: *server, dir: j.newName()}
		a.server.user = attackerName
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
		fmt.Fprintf(j.log, "the attacker has done %d operations meanwhile\n", a.done.Load()-before)
		j.report(amount(name, "files/s"), beside)
		j.report(amount(name+", against alone", "ratio"), beside/alone)
		return nil
	}}
}

// An attack is the sessions of an attacker.
type attack struct {
	ctx    context.Context
	job    *job
	server ftpServer
	dir    string

	done    atomic.Int64 // operations
	stopped atomic.Bool
	running sync.WaitGroup
	mu      sync.Mutex
	open    []io.Closer
}

// The files of an attack.
const (
	attackFile = 1 << 20
	attackTree = 200 // files in a directory that is renamed and listed
)

// start begins the attack. When it returns, each session has done its first operation.
func (a *attack) start(sessions int, do []operation) error {
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
				a.session(do[i%len(do)], i, first)
			}
		})
	}
	began.Wait()
	return nil
}

// An operation is what one session of an attack repeats. One that lasts calls began.
type operation func(a *attack, s *ftpSession, i int, began func()) error

// session repeats an operation in one session until it fails. Limits of the server may refuse what an attacker does.
func (a *attack) session(do operation, i int, first func()) {
	s, err := a.server.login(a.ctx)
	if err != nil {
		first()
		return
	}
	a.keep(s)
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

// keep closes something at the end.
func (a *attack) keep(c io.Closer) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.open = append(a.open, c)
	if a.stopped.Load() {
		_ = c.Close()
	}
}

func (a *attack) stop() {
	a.stopped.Store(true)
	a.mu.Lock()
	for _, c := range a.open {
		_ = c.Close()
	}
	a.mu.Unlock()
	a.running.Wait()
}

func (a *attack) upload(s *ftpSession, i int, _ func()) error {
	return s.store(a.ctx, path.Join(a.dir, "up-"+strconv.Itoa(i)), attackFile)
}

func (a *attack) download(s *ftpSession, _ int, _ func()) error {
	return s.fetch(a.ctx, path.Join(a.dir, "file"), attackFile)
}

func (a *attack) list(s *ftpSession, _ int, _ func()) error {
	_, _, err := s.list(a.ctx, a.dir)
	return err
}

// guess tries a password in a connection of its own.
func (a *attack) guess(*ftpSession, int, func()) error {
	wrong := a.server
	wrong.password = "wrong"
	if s, err := wrong.login(a.ctx); err == nil {
		s.close()
	}
	return nil
}

// rename moves the directory to and fro. One of the sessions succeeds each time.
func (a *attack) rename(s *ftpSession, i int, began func()) error {
	began() // renames of one directory wait for each other
	from, to := path.Join(a.server.dir, a.dir, "tree"), path.Join(a.server.dir, a.dir, "moved")
	if i%2 == 0 {
		from, to = to, from
	}
	for _, line := range []string{"RNFR " + from, "RNTO " + to} {
		if reply, err := s.Send(line); err != nil || strings.HasPrefix(reply, "421") {
			return fmt.Errorf("%s: %w", reply, err)
		}
	}
	return nil
}

// stall sends less than a part and waits until the server or the attack ends the transfer.
func (a *attack) stall(s *ftpSession, i int, began func()) error {
	conn, err := s.data("STOR " + path.Join(a.server.dir, a.dir, "half-"+strconv.Itoa(i)))
	if err != nil {
		return err
	}
	defer conn.Close()
	if err := a.job.content.send(conn, attackFile); err != nil {
		return err
	}
	a.keep(conn)
	began()
	return s.reply("2")
}
