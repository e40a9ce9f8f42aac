package mojibake

import (
	"context"
	"errors"
	"io/fs"
	"path"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"

	"golang.org/x/sync/errgroup"

	"github.com/babelftp/babelftp/internal/base/panics"
)

// A Problem is an object that was not renamed.
type Problem struct{ Path, Target, Reason string }

// An application is one run of Apply.
type application struct {
	*Tenant
	renames
	ctx   context.Context // ends the walk through directories
	group *errgroup.Group
	moves context.Context // ends the moves under way
	moved *atomic.Int64

	mu       sync.Mutex
	problems []Problem
}

// Apply performs the renames of lines with the state Rename, and counts the objects that it moved. Canceling ctx stops
// it between two objects. Canceling moves also cancels moves in flight, which the next run completes. It returns
// problems with single objects, and an error if it would affect other objects too.
func Apply(ctx, moves context.Context, t *Tenant, lines []Line, moved *atomic.Int64) ([]Problem, error) {
	group, walk := errgroup.WithContext(ctx)
	group.SetLimit(maxRequests)
	a := &application{Tenant: t, renames: newRenames(lines), ctx: walk, group: group, moves: moves, moved: moved}
	err := a.run(lines)
	if first := group.Wait(); first != nil {
		err = first // it also ended the walk
	}
	if err == nil {
		err = ctx.Err()
	}
	return a.problems, err
}

// run starts the moves. The contents of a renamed directory move along with it.
func (a *application) run(lines []Line) error {
	for _, l := range lines {
		if l.State != Rename || a.within(l.Path) {
			continue
		}
		p := a.placeOf(l.Path)
		if !l.IsDir() {
			a.submit(p, l.Path, func(bool) {})
			continue
		}
		if err := a.wholeDirectory(p, strings.TrimSuffix(l.Path, "/")); err != nil {
			return err
		}
	}
	return a.ctx.Err()
}

// wholeDirectory moves a directory. It may contain keys without a pathname, which listings do not show.
func (a *application) wholeDirectory(p *Place, dir string) error {
	complete, err := a.directory(p, dir)
	if err != nil || !complete {
		return err
	}
	switch _, err := p.Files.StatDir(a.ctx, p.in(dir)); {
	case err == nil:
		a.keep(dir+"/", "it has objects without a pathname, or another client has stored some during the rename")
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	return nil
}

// keep adds a problem.
func (a *application) keep(name, reason string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.problems = append(a.problems, Problem{Path: name, Target: a.target(name), Reason: reason})
}

// submit starts moving an object, and calls ended when that is done.
func (a *application) submit(p *Place, name string, ended func(complete bool)) {
	a.group.Go(func() (err error) {
		complete := false
		defer func() { ended(complete) }()
		if err := a.ctx.Err(); err != nil {
			return nil
		}
		return panics.Catch(func() error {
			complete, err = a.move(p, name)
			return err
		})
	})
}

// directory moves everything in and below a directory, and then its marker. It reports whether everything was moved.
func (a *application) directory(p *Place, dir string) (complete bool, err error) {
	entries, err := p.Files.List(a.ctx, p.in(dir))
	if errors.Is(err, fs.ErrNotExist) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	var under sync.WaitGroup
	var stays atomic.Bool
	for entry, err := range entries {
		if err == nil {
			err = a.ctx.Err()
		}
		if err != nil {
			under.Wait()
			return false, err
		}
		name := path.Join(dir, entry.Name())
		if entry.IsDir() && p.skips(name) {
			stays.Store(true)
			a.keep(name+"/", "the directory belongs to another tenant or folder of the configuration")
			continue
		}
		if entry.IsDir() {
			emptied, err := a.directory(p, name)
			if err != nil {
				under.Wait()
				return false, err
			}
			if !emptied {
				stays.Store(true)
			}
			continue
		}
		under.Add(1)
		a.submit(p, name, func(complete bool) {
			if !complete {
				stays.Store(true)
			}
			under.Done()
		})
	}
	under.Wait()
	if stays.Load() || a.ctx.Err() != nil {
		return false, a.ctx.Err()
	}
	return a.move(p, dir+"/")
}

// move moves one object, and reports whether the old name is gone. It returns an error only if it would affect other
// objects too.
func (a *application) move(p *Place, name string) (complete bool, err error) {
	target := a.target(name)
	if target == name {
		return true, nil
	}
	reason := ""
	if a.placeOf(target) != p {
		reason = "a folder of the configuration has the new name"
	} else {
		err = p.Files.MoveObject(a.moves, p.in(name), p.in(target))
	}
	switch {
	case reason != "":
	case err == nil:
		a.moved.Add(1)
		return true, nil
	case errors.Is(err, fs.ErrNotExist): // also a directory without a marker
		return true, nil
	case errors.Is(err, syscall.ESTALE):
		reason = "another client stored it again during the rename, so both names stay"
	case errors.Is(err, syscall.EISDIR):
		reason = "a directory has the new name"
	case errors.Is(err, fs.ErrExist) && strings.HasSuffix(name, "/"):
		reason = "the marker of the directory has content"
	case errors.Is(err, fs.ErrExist):
		reason = "a file has the new name"
	case errors.Is(err, syscall.ENAMETOOLONG):
		reason = "the new name is too long for a key of S3"
	case errors.Is(err, syscall.EILSEQ), errors.Is(err, syscall.ENODATA), errors.Is(err, syscall.EFBIG):
		reason = err.Error()
	default:
		return false, err
	}
	a.keep(name, reason)
	return false, nil
}
