package kubernetes

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/babelftp/babelftp/internal/config"
)

// copyName is the name of the copy in the folder of the configuration.
const copyName = "resources.json"

// copyFormat changes with the types below.
const copyFormat = "babelftp.io/v1alpha1 resources 1"

// A copyHeader is the first JSON value in a copy.
type copyHeader struct {
	Format     string
	Server     string // URL of the API server
	Saved      time.Time
	Namespaces []string // "" is all namespaces
	Values     int      // number of copiedObjects that follow
}

// A copiedObject is a resource, or a Secret or ConfigMap that a resource refers to.
type copiedObject struct {
	Resource        *config.Resource `json:",omitempty"`
	Namespace, Name string           `json:",omitempty"`
	Secret          *content         `json:",omitempty"`
	ConfigMap       *content         `json:",omitempty"`
}

// load reads the copy in a folder. It returns nil if there is none, or if it is damaged or from another API server.
func (s *Source) load(folder string) *snapshot {
	if folder == "" {
		return nil
	}
	name := filepath.Join(folder, copyName)
	known, err := readCopy(name, s.host)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		s.log.Warn("copy of Kubernetes resources not usable", "file", name, "err", err)
	}
	return known
}

func readCopy(name, server string) (*snapshot, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	decoder := json.NewDecoder(bufio.NewReader(f))
	var header copyHeader
	if err := decoder.Decode(&header); err != nil {
		return nil, err
	}
	if header.Format != copyFormat {
		return nil, fmt.Errorf("unknown format %q", header.Format)
	}
	if header.Server != server {
		return nil, fmt.Errorf("copy from another API server %s", header.Server)
	}
	known := &snapshot{
		saved: header.Saved, namespaces: header.Namespaces, secrets: map[key]*content{}, configMaps: map[key]*content{},
	}
	for range header.Values {
		var o copiedObject
		if err := decoder.Decode(&o); err != nil {
			return nil, err
		}
		switch {
		case o.Resource != nil:
			known.resources = append(known.resources, o.Resource)
		case o.Secret != nil:
			known.secrets[key{o.Namespace, o.Name}] = o.Secret
		case o.ConfigMap != nil:
			known.configMaps[key{o.Namespace, o.Name}] = o.ConfigMap
		default:
			return nil, errors.New("value that is neither a resource nor a Secret nor a ConfigMap")
		}
	}
	return known, nil
}

// save writes the copy if something has changed and everything is known.
func (s *Source) save() {
	s.mu.Lock()
	folder := s.wanted.Folder
	if folder == "" || !s.unsaved || !s.isKnown || !s.allDone() {
		s.mu.Unlock()
		return
	}
	known := s.snapshot()
	s.unsaved = false
	s.mu.Unlock()

	name := filepath.Join(folder, copyName)
	err := writeCopy(name, s.host, known)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.unsaved = s.unsaved || err != nil
	if err != nil && !s.unsavable {
		s.log.Error("writing the copy of Kubernetes resources failed", "file", name, "err", err)
	}
	s.unsavable = err != nil
}

// writeCopy replaces the copy atomically. Only the owner can read it.
func writeCopy(name, server string, known *snapshot) (err error) {
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(name), "."+copyName+".*.tmp") // with mode 0600
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = f.Close()
			_ = os.Remove(f.Name())
		}
	}()
	buffer := bufio.NewWriter(f)
	if err := encodeCopy(buffer, server, known); err != nil {
		return err
	}
	if err := buffer.Flush(); err != nil {
		return err
	}
	if err := f.Sync(); err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	return os.Rename(f.Name(), name)
}

// encodeCopy writes one value after the other, because all of them together may take many megabytes.
func encodeCopy(w io.Writer, server string, known *snapshot) error {
	encoder := json.NewEncoder(w)
	err := encoder.Encode(copyHeader{
		copyFormat, server, time.Now().UTC(), known.namespaces,
		len(known.resources) + len(known.secrets) + len(known.configMaps),
	})
	for _, r := range known.resources {
		if err == nil {
			err = encoder.Encode(copiedObject{Resource: r})
		}
	}
	for k, c := range known.secrets {
		if err == nil {
			err = encoder.Encode(copiedObject{Namespace: k.namespace, Name: k.name, Secret: c})
		}
	}
	for k, c := range known.configMaps {
		if err == nil {
			err = encoder.Encode(copiedObject{Namespace: k.namespace, Name: k.name, ConfigMap: c})
		}
	}
	return err
}
