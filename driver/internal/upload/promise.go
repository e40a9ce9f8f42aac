package upload

import (
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"hash"

	"github.com/babelftp/babelftp/driver/internal/s3api"
	"github.com/babelftp/babelftp/internal/base/s3error"
)

// Values of [file.TransferInfo.Verified].
const (
	verifiedByS3    = "s3"
	verifiedByParts = "parts"
)

// A promise is the SHA-256 that the client has promised for a file, together with the hash of the bytes received so
// far. If it is not kept, the file is not published. A nil promise is always kept.
type promise struct {
	sum    [sha256.Size]byte
	hashed hash.Hash
}

// newPromise returns the promise of a hash, or nil if the client has promised none.
func newPromise(sum *[sha256.Size]byte) *promise {
	if sum == nil {
		return nil
	}
	return &promise{*sum, sha256.New()}
}

// received adds bytes of the file.
func (p *promise) received(b []byte) {
	if p != nil {
		p.hashed.Write(b) // never fails
	}
}

// check returns [s3error.ErrHashMismatch] if the received bytes are not the promised ones.
func (p *promise) check() error {
	if p == nil || [sha256.Size]byte(p.hashed.Sum(nil)) == p.sum {
		return nil
	}
	return fmt.Errorf("%w: received %x, promised %x", s3error.ErrHashMismatch, p.hashed.Sum(nil), p.sum)
}

// checksum returns the promised hash in the format of S3, or nil without a promise.
func (p *promise) checksum() *string {
	if p == nil {
		return nil
	}
	text := base64.StdEncoding.EncodeToString(p.sum[:])
	return &text
}

// verifiedBy returns how the hash of a stored file was confirmed: by S3 for the whole object, or by this process for
// the bytes that S3 has confirmed in parts. It returns the empty string without a promise.
func (p *promise) verifiedBy(stored *s3api.Result) string {
	switch sum := p.checksum(); {
	case sum == nil:
		return ""
	case stored.Checksum == s3api.SHA256Prefix+*sum:
		return verifiedByS3
	}
	return verifiedByParts
}
