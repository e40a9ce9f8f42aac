package vfs

import (
	"errors"
	"io/fs"
	"iter"
	"path"
)

// homed is a storage where the user's home, and each directory above it, exists although no object is in it: a directory of S3
// begins with its first file, and a user must log in somewhere to upload that.
type homed struct {
	ObjectStorage
	home string // absolute and clean
}

// NewHomeFS lets a home exist; home is absolute, and empty means "/".
func NewHomeFS(storage ObjectStorage, home string) ObjectStorage {
	return &homed{ObjectStorage: storage, home: path.Clean("/" + home)}
}

// leadsHome reports whether name is the home or a directory above it.
func (h *homed) leadsHome(name string) bool { return LeadsTo(name, h.home) }

func (h *homed) Stat(name string) (fs.FileInfo, error) {
	return h.orEmpty(name, h.ObjectStorage.Stat)
}

func (h *homed) StatDir(name string) (fs.FileInfo, error) {
	return h.orEmpty(name, h.ObjectStorage.StatDir)
}

func (h *homed) orEmpty(name string, stat func(string) (fs.FileInfo, error)) (fs.FileInfo, error) {
	info, err := stat(name)
	if errors.Is(err, fs.ErrNotExist) && h.leadsHome(name) {
		return Directory(path.Base(path.Clean("/" + name))), nil
	}
	return info, err
}

func (h *homed) ReadDirSeq(name string) (iter.Seq2[fs.FileInfo, error], error) {
	entries, err := h.ObjectStorage.ReadDirSeq(name)
	if errors.Is(err, fs.ErrNotExist) && h.leadsHome(name) {
		return func(func(fs.FileInfo, error) bool) {}, nil
	}
	return entries, err
}
