package main

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
)

// A target is a way to access the bucket.
type target interface {
	open(ctx context.Context) (session, error)
}

// A session does one operation at a time. Names are relative.
type session interface {
	store(ctx context.Context, name string, size int64) error
	fetch(ctx context.Context, name string, size int64) error
	list(ctx context.Context, dir string) (entries int, first time.Duration, err error)
	close()
}

// A work is a benchmark that runs for every contender.
type work struct {
	name string
	run  func(ctx context.Context, j *job) error
}

// A job is one run of a work, for one contender in one round.
type job struct {
	*bench
	contender *contender
	report    func(row row, value float64)
}

// sizes divides the sizes of the works by shrink.
type sizes struct{ shrink int }

// short is the value of shrink for -short.
const short = 8

// bytes returns the reduced size of a file.
func (s sizes) bytes(n int64) int64 { return max(n/int64(s.shrink), 4<<10) }

// count returns the reduced number of files.
func (s sizes) count(n int) int { return max(n/s.shrink, 4) }

// idle is the time after which a session counts as idle, because the server has released its memory. The
// smoke test does not wait.
func (s sizes) idle() time.Duration {
	if s.shrink > short {
		return 0
	}
	return 20 * time.Second
}

// works returns all works.
func works(s sizes) []work {
	return slices.Concat([]work{
		memoryOfUploads(8, s.bytes(128<<20)),
		memoryOfSessions(s.count(1000), s.idle()),
		big(direct, s.bytes(1<<30)),
		many(direct, 8, 8, s.bytes(16<<20)),
		many(direct, 4, s.count(250), 4<<10),
		listing(direct, s.count(10_000)),
		listing(direct, s.count(100_000)),
		logins(s.count(4000)),
		requests(),
		console(s.count(2000), s.count(100_000), s.idle()),
		twoUsers(8, s.count(25), 4<<10),
		twoUsers(8, s.count(10), s.bytes(1<<20)),
	}, victims(s.count(200), s.count(200)), []work{
		big(slow, s.bytes(256<<20)),
		many(slow, 1, s.count(100), 4<<10),
		listing(slow, s.count(10_000)),
	})
}

// big moves a single file and measures the CPU time of the server.
func big(link string, size int64) work {
	name := link + ": " + bytesText(size)
	return work{name, func(ctx context.Context, j *job) error {
		s, err := j.open(ctx, link)
		if err != nil {
			return err
		}
		defer s.close()
		file := j.newName()
		defer j.remove(ctx, file)
		for _, way := range []struct {
			name string
			move func(context.Context, string, int64) error
		}{{"up", s.store}, {"down", s.fetch}} {
			cpu, err := j.cpuOf(link, func() error {
				begin := time.Now()
				if err := way.move(ctx, file, size); err != nil {
					return err
				}
				j.report(speed(name+" "+way.name, "MiB/s"), perSecond(float64(size)/(1<<20), begin))
				return nil
			})
			if err != nil {
				return err
			}
			if link == direct && cpu > 0 {
				j.report(amount("server CPU seconds a GiB, "+way.name, "s"), cpu.Seconds()*(1<<30)/float64(size))
			}
		}
		return nil
	}}
}

// many moves files in parallel sessions, one after another in each session.
func many(link string, sessions, files int, size int64) work {
	name := fmt.Sprintf("%s: %d x %d files of %s", link, sessions, files, bytesText(size))
	unit, scale := "files/s", 1.0
	if size >= 1<<20 {
		unit, scale = "MiB/s", float64(size)/(1<<20)
	}
	return work{name, func(ctx context.Context, j *job) error {
		all, err := j.openAll(ctx, link, sessions)
		if err != nil {
			return err
		}
		defer closeAll(all)
		dir := j.newName()
		defer j.remove(ctx, dir+"/")
		file := func(session, file int) string { return path.Join(dir, strconv.Itoa(session)+"-"+strconv.Itoa(file)) }
		for _, way := range []struct {
			name string
			move func(s session, name string) error
		}{
			{"up", func(s session, name string) error { return s.store(ctx, name, size) }},
			{"down", func(s session, name string) error { return s.fetch(ctx, name, size) }},
		} {
			cpu, err := j.cpuOf(link, func() error {
				begin := time.Now()
				err := atOnce(len(all), func(i int) error {
					for k := range files {
						if err := way.move(all[i], file(i, k)); err != nil {
							return err
						}
					}
					return nil
				})
				if err == nil {
					j.report(speed(name+" "+way.name, unit), perSecond(float64(sessions*files)*scale, begin))
				}
				return err
			})
			if err != nil {
				return err
			}
			if link == direct && unit == "files/s" && cpu > 0 {
				j.report(
					amount(fmt.Sprintf("server CPU milliseconds a file of %s, %s", bytesText(size), way.name), "ms"),
					cpu.Seconds()*1000/float64(sessions*files))
			}
		}
		return nil
	}}
}

// listing lists a directory with this number of files.
func listing(link string, entries int) work {
	name := fmt.Sprintf("%s: MLSD of %d", link, entries)
	return work{name, func(ctx context.Context, j *job) error {
		dir, err := j.directory(ctx, entries)
		if err != nil {
			return err
		}
		s, err := j.open(ctx, link)
		if err != nil {
			return err
		}
		defer s.close()
		begin := time.Now()
		n, first, err := s.list(ctx, dir)
		if err == nil && n != entries {
			err = fmt.Errorf("%d entries, not %d", n, entries)
		}
		if err != nil {
			return err
		}
		j.report(speed(name, "entries/s"), perSecond(float64(entries), begin))
		j.report(amount(name+", first entry", "ms"), float64(first.Microseconds())/1000)
		return nil
	}}
}

// logins logs in and quits repeatedly, in several parallel clients.
func logins(n int) work {
	const clients = 4
	return work{"login and quit", func(ctx context.Context, j *job) error {
		server, ok := j.contender.targets[direct].(*ftpServer)
		if !ok {
			return nil
		}
		begin := time.Now()
		err := atOnce(clients, func(int) error {
			for range n / clients {
				s, err := server.login(ctx)
				if err == nil {
					err = s.quit()
				}
				if err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
		j.report(amount("logins and quits a second", "1/s"), perSecond(float64(n/clients*clients), begin))
		return nil
	}}
}

// requests counts the S3 requests for a small file in new sessions.
func requests() work {
	const size = 4 << 10
	return work{"S3 requests", func(ctx context.Context, j *job) error {
		file := j.newName()
		defer j.remove(ctx, file)
		for _, way := range []struct {
			name string
			move func(s session) error
		}{
			{"up", func(s session) error { return s.store(ctx, file, size) }},
			{"down", func(s session) error { return s.fetch(ctx, file, size) }},
		} {
			s, err := j.open(ctx, counted)
			if errors.Is(err, errNoTarget) {
				return nil
			}
			if err != nil {
				return err
			}
			j.proxy.Reset()
			err = way.move(s)
			s.close()
			if err != nil {
				return err
			}
			j.report(
				amount("S3 requests for a new small file, "+way.name, "requests"), float64(len(j.proxy.Operations())))
		}
		return nil
	}}
}

// memoryOfUploads measures the peak memory of a server during parallel uploads.
func memoryOfUploads(n int, size int64) work {
	name := fmt.Sprintf("peak memory of %d x %s up at once", n, bytesText(size))
	return work{name, func(ctx context.Context, j *job) error {
		p, err := j.freshProcess(ctx)
		if p == nil || err != nil {
			return err
		}
		all, err := j.openAll(ctx, direct, n)
		if err != nil {
			return err
		}
		defer closeAll(all)
		if err := p.resetPeak(); err != nil {
			return err
		}
		dir := j.newName()
		defer j.remove(ctx, dir+"/")
		err = atOnce(n, func(i int) error { return all[i].store(ctx, path.Join(dir, strconv.Itoa(i)), size) })
		if err != nil {
			return err
		}
		peak, err := p.memory("VmHWM")
		if err != nil {
			return err
		}
		j.report(amount(name, "MiB"), float64(peak)/(1<<20))
		return nil
	}}
}

// memoryOfSessions measures the memory of an idle session after the login.
func memoryOfSessions(n int, idle time.Duration) work {
	const name = "memory of an idle session"
	return work{name, func(ctx context.Context, j *job) error {
		p, err := j.freshProcess(ctx)
		if p == nil || err != nil {
			return err
		}
		// The first batch makes the server allocate what it only needs once, such as megabytes for checking
		// passwords.
		var before int64
		for range 2 {
			all, err := j.openAll(ctx, direct, n)
			if err != nil {
				return err
			}
			defer closeAll(all)
			select {
			case <-time.After(idle):
			case <-ctx.Done():
				return ctx.Err()
			}
			rss, err := p.memory("VmRSS")
			if err != nil {
				return err
			}
			if before > 0 {
				j.report(amount(name, "KiB"), float64(rss-before)/float64(n)/(1<<10))
			}
			before = rss
		}
		return nil
	}}
}

// openAll opens n sessions.
func (j *job) openAll(ctx context.Context, link string, n int) ([]session, error) {
	all := make([]session, n)
	for i := range all {
		var err error
		if all[i], err = j.open(ctx, link); err != nil {
			closeAll(all[:i])
			return nil, err
		}
	}
	return all, nil
}

func closeAll(all []session) {
	for _, s := range all {
		s.close()
	}
}

// atOnce runs a function n times in parallel.
func atOnce(n int, do func(i int) error) error {
	var group errgroup.Group
	var start sync.WaitGroup
	start.Add(1)
	for i := range n {
		group.Go(func() error {
			start.Wait()
			return do(i)
		})
	}
	start.Done()
	return group.Wait()
}

func perSecond(n float64, begin time.Time) float64 { return n / time.Since(begin).Seconds() }

// bytesText formats a size in the largest unit that divides it.
func bytesText(n int64) string {
	for shift, unit := range []string{"B", "KiB", "MiB"} {
		if n%(1<<(10*shift+10)) != 0 {
			return fmt.Sprintf("%d %s", n>>(10*shift), unit)
		}
	}
	return fmt.Sprintf("%d GiB", n>>30)
}
