// Package reload reloads files when they change.
//
// A [Watcher] notices it at once, for the files that a configuration was read from. It watches folders (inotify and its
// relatives, by package fsnotify), because editors and Kubernetes replace files: a mounted ConfigMap or Secret changes
// by the link ..data, which leads to another folder then. A [Value] looks at its files whenever it is asked for.
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
	// quiet is how long nothing must change before the files are read, so that several changes count as one.
	quiet = 200 * time.Millisecond
	// missing is how often a folder that has gone is looked for.
	missing = time.Second
	// maxLinks is how many symbolic links may lead to a file, as in Linux.
	maxLinks = 40
)

// A Watcher says when the files of a configuration have changed.
type Watcher struct {
	// Files are the names of the files and folders that were read last.
	Files func() []string
	// Changed reports whether one of them has another content than was read.
	Changed func() bool
	// Now has a value for each demand to read all again, whether something has changed or not.
	Now <-chan os.Signal
	// Reload reads all again, for a demand or because files have changed.
	Reload func(demanded bool)
	Log    *slog.Logger
}

// Run calls Reload when files have changed, or for a demand, until ctx ends. Where folders cannot be watched, only
// demands count.
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
	for {
		select {
		case <-w.Now:
			w.Reload(true)
			timer.Reset(0)
		case e := <-events:
			if p.lead(e.Name) {
				timer.Reset(quiet)
			}
			if p.folders[e.Name] {
				p.folders[e.Name] = false // until it is watched again
			}
		case err := <-errs: // events were lost
			w.Log.Debug("watch files of the configuration", "err", err)
			timer.Reset(quiet)
		case <-timer.C:
			// First the watches, then the look: a folder that was replaced just before sends no event.
			if notifier != nil {
				p = w.watch(notifier, p)
			}
			switch {
			case w.Changed():
				w.Reload(false)
				timer.Reset(quiet) // the files may be others now
			case p.missing():
				timer.Reset(missing)
			}
		case <-ctx.Done():
			return
		}
	}
}

func (w *Watcher) cannotWatch(err error) {
	w.Log.Warn(
		"changed files of the configuration are not noticed; send SIGHUP after a change, or allow more watches "+
			"(fs.inotify.max_user_watches)", "err", err)
}

// watch watches the folders of all files, and no others.
func (w *Watcher) watch(notifier *fsnotify.Watcher, before paths) paths {
	p := paths{names: map[string]bool{}, folders: map[string]bool{}}
	for _, name := range w.Files() {
		p.trace(name)
	}
	for folder := range before.folders {
		if _, stays := p.folders[folder]; !stays {
			_ = notifier.Remove(folder) // it may have gone
		}
	}
	for folder := range p.folders {
		err := notifier.Add(folder)
		p.folders[folder] = err == nil
		if err != nil && !os.IsNotExist(err) {
			if !before.failed {
				w.cannotWatch(err)
			}
			p.failed, p.folders[folder] = true, true // it is there
		}
	}
	return p
}

// paths are the files and links that lead to the content of files, with the folders that they are in.
type paths struct {
	names   map[string]bool
	folders map[string]bool // and whether they are there
	failed  bool            // a folder could not be watched
}

// lead reports whether a change of name may change a content. A folder itself changes when it is renamed or removed,
// to make way for another one.
func (p *paths) lead(name string) bool {
	_, folder := p.folders[name]
	return folder || p.names[name] || p.names[filepath.Dir(name)]
}

// missing reports whether a folder is not there.
func (p *paths) missing() bool {
	for _, there := range p.folders {
		if !there {
			return true
		}
	}
	return false
}

// trace adds a file or a folder, and all links on the way to it.
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

// resolve returns a name without links, and adds those that it follows, up to a number of them for each folder on the
// way.
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
