package config

import (
	"bytes"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// A usedReference is a version of a Secret or ConfigMap that was read.
type usedReference struct {
	configMap     bool
	name, version string
	ok            bool
}

// A heldValue is a value of a Secret, or the name of a file with it, that a version of a spec uses. It outlives the
// Secret.
type heldValue struct{ Name, Key, Text string }

// A heldConfigMap is a ConfigMap that a version of a spec uses.
type heldConfigMap struct {
	Name string
	Data map[string]string
}

// held is a resolver with the references that a version of a spec used when it was valid.
type held struct {
	Values []heldValue
	Maps   []heldConfigMap
}

var errNotHeld = errors.New("does not exist anymore") // never shown: the problem of the current version is

func (h *held) secret(name, key string) (string, error) {
	i := slices.IndexFunc(h.Values, func(v heldValue) bool { return v.Name == name && v.Key == key })
	if i < 0 {
		return "", errNotHeld
	}
	return h.Values[i].Text, nil
}

func (h *held) file(name, key, _ string) (string, error) {
	// A value can be used as a text and as a file.
	i := slices.IndexFunc(h.Values, func(v heldValue) bool { return v.Name == name && v.Key == fileMark+key })
	if i < 0 {
		return "", errNotHeld
	}
	return h.Values[i].Text, nil
}

// fileMark is the prefix of keys whose value is the name of a file. Keys of Secrets cannot contain it.
const fileMark = "file:"

func (h *held) configMap(name string) (map[string]string, error) {
	i := slices.IndexFunc(h.Maps, func(m heldConfigMap) bool { return m.Name == name })
	if i < 0 {
		return nil, errNotHeld
	}
	return h.Maps[i].Data, nil
}

// files returns the names of the files.
func (h *held) files(yield func(string) bool) {
	for _, v := range h.Values {
		if strings.HasPrefix(v.Key, fileMark) && !yield(v.Text) {
			return
		}
	}
}

// A liveResolver reads references of the resources in a namespace, and records what it has read.
type liveResolver struct {
	references References // may be nil
	namespace  string
	folder     string // for files
	used       []usedReference
	held       held
}

func (l *liveResolver) note(u usedReference) {
	if !slices.ContainsFunc(l.used, func(other usedReference) bool { return other == u }) {
		l.used = append(l.used, u)
	}
}

// content returns the value of a key in a Secret.
func (l *liveResolver) content(name, key string) ([]byte, error) {
	var data map[string][]byte
	u := usedReference{name: name}
	if l.references != nil {
		data, u.version, u.ok = l.references.Secret(l.namespace, name)
	}
	l.note(u)
	content, found := data[key]
	switch {
	case !u.ok:
		return nil, &missingError{ResourceSecretNotFound,
			fmt.Sprintf("the Secret %q does not exist in the namespace %s: create it, or correct the name", name, l.namespace)}
	case !found:
		return nil, &missingError{ResourceSecretNotFound,
			fmt.Sprintf("the Secret %q has no key %q: add it, or name another one in key", name, key)}
	}
	return content, nil
}

func (l *liveResolver) secret(name, key string) (string, error) {
	content, err := l.content(name, key)
	if err != nil {
		return "", err
	}
	text, err := textOf(content)
	if err != nil {
		return "", fmt.Errorf("the value %q of the Secret %q %w", key, name, err)
	}
	l.held.Values = append(l.held.Values, heldValue{name, key, text})
	return text, nil
}

func (l *liveResolver) file(name, key, role string) (string, error) {
	content, err := l.content(name, key)
	if err != nil {
		return "", err
	}
	if err := checkPEM(role, content); err != nil {
		return "", fmt.Errorf("the value %q of the Secret %q %w", key, name, err)
	}
	file, err := writeSecretFile(l.folder, content)
	if err != nil {
		return "", err
	}
	l.held.Values = append(l.held.Values, heldValue{name, fileMark + key, file})
	return file, nil
}

func (l *liveResolver) configMap(name string) (map[string]string, error) {
	var data map[string]string
	u := usedReference{configMap: true, name: name}
	if l.references != nil {
		data, u.version, u.ok = l.references.ConfigMap(l.namespace, name)
	}
	if l.note(u); !u.ok {
		return nil, &missingError{ResourceConfigMapNotFound,
			fmt.Sprintf("the ConfigMap %q does not exist in the namespace %s: create it, or correct the name", name, l.namespace)}
	}
	l.held.Maps = append(l.held.Maps, heldConfigMap{name, data})
	return data, nil
}

// changed reports whether references have another version now.
func changed(used []usedReference, namespace string, now References) bool {
	return slices.ContainsFunc(used, func(u usedReference) bool {
		next := usedReference{configMap: u.configMap, name: u.name}
		switch {
		case now == nil:
		case u.configMap:
			_, next.version, next.ok = now.ConfigMap(namespace, u.name)
		default:
			_, next.version, next.ok = now.Secret(namespace, u.name)
		}
		return next != u
	})
}

// checkPEM returns an error if content cannot be used in a role: cert, key, ca or crl. Unlike the errors of crypto/tls
// and crypto/x509, its errors contain nothing of the content.
func checkPEM(role string, content []byte) error {
	rest, wanted := content, map[string]string{"key": "PRIVATE KEY", "crl": "X509 CRL"}[role]
	if wanted == "" {
		wanted = "CERTIFICATE"
	}
	found := false
	for {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			break
		}
		if block.Type != wanted && (role != "key" || !strings.HasSuffix(block.Type, " "+wanted)) {
			continue
		}
		found = true
		var err error
		switch role {
		case "key": // parsed together with the certificate, with constant errors
		case "crl":
			_, err = x509.ParseRevocationList(block.Bytes)
		default:
			_, err = x509.ParseCertificate(block.Bytes)
		}
		if err != nil {
			return fmt.Errorf("has a PEM block %q that cannot be parsed", wanted)
		}
	}
	if !found {
		return fmt.Errorf("has no PEM block %q", wanted)
	}
	return nil
}

// secretFiles is the folder with files below kubernetes.folder.
const secretFiles = "files"

// writeSecretFile writes a value of a Secret to a file, which is named after the hash of its content. Therefore a
// tenant whose certificate changes is another tenant, and a file never changes while it is in use.
func writeSecretFile(folder string, content []byte) (string, error) {
	sum := sha256.Sum256(content)
	dir := filepath.Join(folder, secretFiles)
	name := filepath.Join(dir, hex.EncodeToString(sum[:])+".pem")
	if have, err := os.ReadFile(name); err == nil && bytes.Equal(have, content) {
		return name, nil
	}
	err := os.MkdirAll(dir, 0o700)
	if err == nil {
		err = replaceFile(dir, name, content)
	}
	if err != nil {
		return "", fmt.Errorf("the server cannot write to kubernetes.folder: %w", withoutNames(err))
	}
	return name, nil
}

// withoutNames removes the names of files from an error.
func withoutNames(err error) error {
	for inner := errors.Unwrap(err); inner != nil; inner = errors.Unwrap(err) {
		err = inner
	}
	return err
}

// replaceFile writes a file that only the server can read.
func replaceFile(dir, name string, content []byte) error {
	f, err := os.CreateTemp(dir, "new-")
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	if errClose := f.Close(); err == nil {
		err = errClose
	}
	if err == nil {
		err = os.Rename(f.Name(), name)
	}
	if err != nil {
		_ = os.Remove(f.Name())
	}
	return err
}

// removeUnusedFiles removes the files of Secrets that are in none of the sets.
func removeUnusedFiles(folder string, used ...map[string]bool) {
	dir := filepath.Join(folder, secretFiles)
	entries, _ := os.ReadDir(dir) // fails if there are none
	for _, e := range entries {
		name := filepath.Join(dir, e.Name())
		if !slices.ContainsFunc(used, func(names map[string]bool) bool { return names[name] }) {
			_ = os.Remove(name) // tried again after the next change
		}
	}
}
