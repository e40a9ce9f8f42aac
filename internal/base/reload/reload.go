// Package reload reloads files when they change.
//
// A [Watcher] is for the files of the configuration and notices changes immediately. It watches directories with
// package fsnotify (inotify on Linux), because editors and Kubernetes replace files instead of writing them. For
// example, Kubernetes updates a mounted ConfigMap or Secret by pointing the link ..data to another directory.
//
// A [Value] is for certificates and similar files. It checks its files whenever it is used. [Keep] preserves values
// that have not changed.
package reload

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/fsnotify/fsnotify"
)

const (
	// settleDelay is the time without further changes before the files are read, so that several changes cause only one
	// reload.
	settleDelay = 200 * time.Millisecond
	// retryInterval is the interval at which the watcher checks for a missing directory.
	retryInterval = time.Second
	// maxLinks is the maximum number of symbolic links that are followed, as in Linux.
	maxLinks = 40
)

// A Watcher reloads the configuration when its files change.
type Watcher struct {
	// Files returns the names of the files and directories that were last read.
	Files func() []string
	// Changed reports whether the content of one of these files differs from what was last read.
	Changed func() bool
	// Now triggers an unconditional reload with each value, for example with SIGHUP.
	Now <-chan os.Signal
	// Reload reads all files again. demanded is true for a reload triggered by Now.
	Reload func(demanded bool) error
	Log    *slog.Logger

	checks chan chan error // see Check
}

// NewWatcher returns w after it is ready for Check.
func NewWatcher(w Watcher) *Watcher {
	w.checks = make(chan chan error)
	return &w
}

// Check calls Reload at once if files have changed. It returns nil if the files as they are now are in use, and the
// error of their Reload otherwise. It waits until Run is called.
func (w *Watcher) Check(ctx context.Context) error {
	done := make(chan error, 1)
	select {
	case w.checks <- done:
		return <-done
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Run calls Reload when files have changed and when Now receives a value, until ctx ends. If directories cannot be
// watched, it logs a warning and only Now triggers reloads.
func (w *Watcher) Run(ctx context.Context) {
	var events chan fsnotify.Event
	var errs chan error
	notifier, err := fsnotify.NewWatcher()
	if err == nil {
		defer notifier.Close()
		events, errs = notifier.Events, notifier.Errors
	} else {
		w.cannotWatch(err)
	}
	var p paths
	timer := time.NewTimer(0)
	defer timer.Stop()
	var last error // of Reload
	for {
		select {
		case <-w.Now:
			last = w.Reload(true)
			timer.Reset(0)
		case done := <-w.checks:
			if w.Changed() {
				last = w.Reload(false)
				timer.Reset(settleDelay)
			}
			done <- last
		case e := <-events:
			if p.matches(e.Name) {
				timer.Reset(settleDelay)
			}
			if p.folders[e.Name] {
				p.folders[e.Name] = false // until it is watched again
			}
		case err := <-errs: // events were lost
			w.Log.Debug("watching the configuration files failed", "err", err)
			timer.Reset(settleDelay)
		case <-timer.C:
			// Update the watches before checking for changes: a directory that was just replaced sends no event.
			if notifier != nil {
				p = w.watch(notifier, p)
			}
			switch {
			case w.Changed():
				last = w.Reload(false)
				timer.Reset(settleDelay) // the configuration may consist of other files now
			case p.anyMissing():
				timer.Reset(retryInterval)
			}
		case <-ctx.Done():
			return
		}
	}
}

func (w *Watcher) cannotWatch(err error) {
	w.Log.Warn(
		"configuration files could not be watched; send SIGHUP after a change, or allow more watches "+
			"(fs.inotify.max_user_watches)", "err", err)
}

// watch watches exactly the folders of the current files, and returns them.
func (w *Watcher) watch(notifier *fsnotify.Watcher, before paths) paths {
	p := paths{names: map[string]bool{}, folders: map[string]bool{}}
	for _, name := range w.Files() {
		p.trace(name)
	}
	for folder := range before.folders {
		if _, stays := p.folders[folder]; !stays {
			_ = notifier.Remove(folder) // fails if the folder no longer exists
		}
	}
	for folder := range p.folders {
		err := notifier.Add(folder)
		p.folders[folder] = err == nil
		if err != nil && !os.IsNotExist(err) {
			if !before.failed {
				w.cannotWatch(err)
			}
			p.failed, p.folders[folder] = true, true // the folder exists
		}
	}
	return p
}

// paths are the files of the configuration, the symbolic links that lead to them, and the folders of both.
type paths struct {
	names   map[string]bool
	folders map[string]bool // the value is true if the folder exists
	failed  bool            // a folder could not be watched
}

// matches reports whether an event for name may affect the content of a file. Events for a folder itself count, because
// it may have been renamed or removed to be replaced by another one.
func (p *paths) matches(name string) bool {
	_, folder := p.folders[name]
	return folder || p.names[name] || p.names[filepath.Dir(name)]
}

// anyMissing reports whether one of the folders does not exist.
func (p *paths) anyMissing() bool {
	for _, exists := range p.folders {
		if !exists {
			return true
		}
	}
	return false
}

// trace adds a file or a folder and all symbolic links on the path to it.
func (p *paths) trace(name string) {
	name, err := filepath.Abs(name)
	if err != nil {
		return
	}
	name = p.resolve(name, maxLinks)
	p.add(name)
	if info, err := os.Stat(name); err == nil && info.IsDir() {
		p.folders[name] = true
	}
}

// resolve returns a name without symbolic links and adds the links that it follows. It follows at most links of them
// for each element of the path.
func (p *paths) resolve(name string, links int) string {
	folder := filepath.Dir(name)
	if folder == name || links == 0 {
		return name
	}
	folder = p.resolve(folder, links)
	name = filepath.Join(folder, filepath.Base(name))
	target, err := os.Readlink(name)
	if err != nil {
		return name
	}
	p.add(name)
	if !filepath.IsAbs(target) {
		target = filepath.Join(folder, target)
	}
	return p.resolve(target, links-1)
}

func (p *paths) add(name string) {
	p.names[name] = true
	p.folders[filepath.Dir(name)] = true
}
