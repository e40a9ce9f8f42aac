// Package keyring encrypts small values that are stored where others can read or replace them.
//
// A [Ring] has one key or several. [Ring.Seal] encrypts with the first key, and [Ring.Open] decrypts with any of them,
// so that a key can be replaced without downtime: add the new key at the end on all servers, then move it to the
// beginning, and remove the old one when all values have been written again.
//
// Values are encrypted with AES-256-GCM (NIST SP 800-38D). The name and the version of a value are authenticated with
// it: a value that was copied to another name, or whose version was changed, cannot be opened.
package keyring

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// KeySize is the size of a key, in bytes.
const KeySize = 32

// idSize is the size of the identifier of a key, in bytes. It only has to tell a few keys apart.
const idSize = 4

// A Ring holds keys. It is safe for concurrent use.
type Ring struct{ keys []key }

type key struct {
	id     string
	aead   cipher.AEAD
	secret []byte
}

// Parse returns a ring of the keys in a text, which are separated by white space. Each is the Base64 of [KeySize]
// random bytes, such as the output of "openssl rand -base64 32". Errors do not contain the keys.
func Parse(text string) (*Ring, error) {
	r := &Ring{}
	for _, field := range strings.Fields(text) {
		secret, err := base64.StdEncoding.DecodeString(field)
		if err != nil || len(secret) != KeySize {
			return nil, fmt.Errorf("key %d is not the Base64 of %d bytes", len(r.keys)+1, KeySize)
		}
		k, err := newKey(secret)
		if err != nil {
			return nil, err
		}
		r.keys = append(r.keys, k)
	}
	if len(r.keys) == 0 {
		return nil, errors.New("there is no key")
	}
	return r, nil
}

// newKey derives the key for encryption and its identifier from a secret.
func newKey(secret []byte) (k key, err error) {
	encryption, err := derive(secret, "encryption", KeySize)
	if err != nil {
		return key{}, err
	}
	id, err := derive(secret, "identifier", idSize)
	if err != nil {
		return key{}, err
	}
	block, err := aes.NewCipher(encryption)
	if err != nil {
		return key{}, err
	}
	k.id, k.secret = hex.EncodeToString(id), secret
	k.aead, err = cipher.NewGCMWithRandomNonce(block)
	return k, err
}

// derive returns a key for one purpose (HKDF, RFC 5869).
func derive(secret []byte, purpose string, size int) ([]byte, error) {
	return hkdf.Key(sha256.New, secret, nil, "babelftp keyring 1 "+purpose, size)
}

// Derive returns a key of [KeySize] bytes for another purpose, such as the keys of an HMAC. Servers with the same first
// key get the same result.
func (r *Ring) Derive(purpose string) ([]byte, error) {
	return derive(r.keys[0].secret, "other "+purpose, KeySize)
}

// First returns the identifier of the key that encrypts.
func (r *Ring) First() string { return r.keys[0].id }

// sealed is the JSON object in which a value is stored.
type sealed struct {
	Version int64  `json:"version"`
	Key     string `json:"key"`
	Data    []byte `json:"data"` // nonce and ciphertext
}

// Seal encrypts a value. Two results are never equal, because the nonce is random.
func (r *Ring) Seal(name string, version int64, value []byte) (string, error) {
	k := r.keys[0]
	text, err := json.Marshal(sealed{version, k.id, k.aead.Seal(nil, nil, value, associated(name, version))})
	return string(text), err
}

// An UnknownKeyError reports a value that was encrypted with a key that the ring does not have.
type UnknownKeyError struct{ Key string }

func (e *UnknownKeyError) Error() string {
	return fmt.Sprintf("it was encrypted with the key %s, which is not configured", e.Key)
}

// Open decrypts a value that [Ring.Seal] returned for the same name, and returns its version. The error is an
// [UnknownKeyError] if the key is missing.
func (r *Ring) Open(name, text string) (value []byte, version int64, err error) {
	var s sealed
	if err := json.Unmarshal([]byte(text), &s); err != nil {
		return nil, 0, fmt.Errorf("it is not an encrypted value: %w", err)
	}
	for _, k := range r.keys {
		if k.id == s.Key {
			value, err = k.aead.Open(nil, nil, s.Data, associated(name, s.Version))
			if err != nil {
				return nil, 0, errors.New("it was damaged, or written for another name")
			}
			return value, s.Version, nil
		}
	}
	return nil, 0, &UnknownKeyError{s.Key}
}

// associated returns the data that is authenticated with a value.
func associated(name string, version int64) []byte {
	return []byte(name + "\x00" + strconv.FormatInt(version, 10))
}
