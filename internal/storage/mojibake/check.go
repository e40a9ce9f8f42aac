package mojibake

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"
	"syscall"

	"golang.org/x/sync/errgroup"

	"github.com/babelftp/babelftp/internal/base/panics"
)

// Objects returns the number of objects that lines rename.
func Objects(lines []Line) (n int64) {
	all := newRenames(lines)
	for _, l := range lines {
		if l.State == Rename && !all.within(l.Path) {
			n += l.Objects
		}
	}
	return n
}

// Check compares the lines to rename with the buckets, and changes the state of lines whose rename is impossible.
func Check(ctx context.Context, t *Tenant, lines []Line) error {
	all := newRenames(lines)
	first := map[string]string{} // path by target
	for i := range lines {
		l := &lines[i]
		if l.State != Rename {
			continue
		}
		target := all.target(l.Path)
		if other, taken := first[target]; taken {
			l.State, l.Note = Exists, other+" gets this name"
		} else {
			first[target] = l.Path
		}
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(maxRequests)
	for i := range lines {
		if l := &lines[i]; l.State == Rename {
			group.Go(func() error { return panics.Catch(func() error { return t.check(ctx, l, all.target(l.Path)) }) })
		}
	}
	return group.Wait()
}

// check compares one line with the bucket.
func (t *Tenant) check(ctx context.Context, l *Line, target string) error {
	p := t.placeOf(l.Path)
	if p == nil {
		return fmt.Errorf("%s: the tenant has no such directory", l.Path)
	}
	if t.placeOf(target) != p {
		l.State, l.Note = Exists, "a folder of the configuration has this name"
		return nil
	}
	stat := p.Files.StatFile
	if l.IsDir() {
		stat = p.Files.StatDir
	}
	exists := func(
		stat func(context.Context, string) (fs.FileInfo, error), name string,
	) (bool, error) {
		_, err := stat(ctx, strings.TrimSuffix(p.in(name), "/"))
		switch {
		case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.EISDIR), errors.Is(err, syscall.ENOTDIR):
			return false, nil
		case err != nil:
			return false, err
		}
		return true, nil
	}
	there, err := exists(stat, l.Path)
	if err == nil && !there {
		l.State, l.Note = Gone, ""
		return nil
	}
	if err != nil {
		return err
	}
	there, err = exists(stat, target)
	switch {
	case errors.Is(err, syscall.ENAMETOOLONG):
		l.State, l.Note = Long, "the new name is too long for a key of S3"
		return nil
	case err != nil:
		return err
	case there && l.IsDir():
		l.Note = "joins the directory " + path.Base(target) + ", which exists"
	case there:
		var moving bool
		moving, err = p.Files.IsMoving(ctx, p.in(l.Path), p.in(target))
		switch {
		case errors.Is(err, fs.ErrNotExist): // the file or its copy is gone
			return nil
		case moving:
			l.Note = "an interrupted run has copied it"
		default:
			l.State, l.Note = Exists, "a file has the new name"
		}
	case !l.IsDir():
		if there, err = exists(p.Files.StatDir, target); there {
			l.State, l.Note = Exists, "a directory has the new name"
		}
	}
	return err
}
