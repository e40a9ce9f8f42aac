package vfs

import (
	"errors"
	"io/fs"
	"iter"
	"path"
)

// homeFS lets the home of a user, and each directory above it, exist before an object is in it. A directory of S3 begins with its
// first file, and a user must be able to log in to upload that.
type homeFS struct {
	ObjectStorage
	home string // absolute and clean
}

// NewHomeFS lets a home directory exist, and those above it. An empty home means "/".
func NewHomeFS(storage ObjectStorage, home string) ObjectStorage {
	return &homeFS{ObjectStorage: storage, home: path.Clean("/" + home)}
}

// leadsHome reports whether name is the home or a directory above it.
func (h *homeFS) leadsHome(name string) bool { return LeadsTo(name, h.home) }

func (h *homeFS) Stat(name string) (fs.FileInfo, error) {
	return h.orEmpty(name, h.ObjectStorage.Stat)
}

func (h *homeFS) StatDir(name string) (fs.FileInfo, error) {
	return h.orEmpty(name, h.ObjectStorage.StatDir)
}

func (h *homeFS) orEmpty(name string, stat func(string) (fs.FileInfo, error)) (fs.FileInfo, error) {
	info, err := stat(name)
	if errors.Is(err, fs.ErrNotExist) && h.leadsHome(name) {
		return Directory(path.Base(path.Clean("/" + name))), nil
	}
	return info, err
}

func (h *homeFS) ReadDirSeq(name string) (iter.Seq2[fs.FileInfo, error], error) {
	entries, err := h.ObjectStorage.ReadDirSeq(name)
	if errors.Is(err, fs.ErrNotExist) && h.leadsHome(name) {
		return func(func(fs.FileInfo, error) bool) {}, nil
	}
	return entries, err
}
