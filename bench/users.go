package main

import (
	"context"
	"fmt"
	"path"
	"time"
)

// twoUsers measures the cost of sharing the S3 server fairly. It compares the files that two users move at
// the same time with those that one user moves in twice as many sessions.
func twoUsers(sessions, files int, size int64) work {
	name := fmt.Sprintf("2 users: %d sessions of each, %d files of %s a session", sessions, files, bytesText(size))
	return work{name, func(ctx context.Context, j *job) error {
		first, ok := j.contender.targets[direct].(*ftpServer)
		if !ok || j.contender.own == nil { // needs a second user
			return nil
		}
		second := *first
		second.user = attackerName
		var one, two []session
		for i := range 2 * sessions {
			a, err := first.open(ctx)
			if err != nil {
				return err
			}
			defer a.close()
			one = append(one, a)
			if i < sessions {
				two = append(two, a)
				continue
			}
			b, err := second.open(ctx)
			if err != nil {
				return err
			}
			defer b.close()
			two = append(two, b)
		}
		dir := j.newName()
		defer j.remove(ctx, dir+"/")
		for _, way := range []struct {
			name string
			move func(s session, name string) error
		}{
			{"up", func(s session, name string) error { return s.store(ctx, name, size) }},
			{"down", func(s session, name string) error { return s.fetch(ctx, name, size) }},
		} {
			var took [2]time.Duration
			for run, users := range []int{1, 2, 2, 1} { // this order cancels drift over time
				all := [][]session{one, two}[users-1]
				begin := time.Now()
				err := atOnce(len(all), func(i int) error {
					for k := range files {
						if err := way.move(all[i], path.Join(dir, fmt.Sprint(run, "-", i, "-", k))); err != nil {
							return err
						}
					}
					return nil
				})
				if err != nil {
					return err
				}
				took[users-1] += time.Since(begin)
			}
			j.report(amount(name+" "+way.name, "ratio"), took[0].Seconds()/took[1].Seconds())
		}
		return nil
	}}
}
