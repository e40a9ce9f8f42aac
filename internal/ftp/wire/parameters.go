package wire

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"strings"
)

// TransferParameters hold the values set by TYPE, REST, RANG, ALLO and SITE HASH for the next transfer.
//
// The next transfer command resets all of them except the type, even if it fails. A client that retries sends REST
// again (RFC 3659, 5.3). Other commands may come between, because most clients send REST before PASV. Only an upload
// resets the hash: if a listing or a download did, the upload that follows would be stored unchecked.
type TransferParameters struct {
	ASCII     bool       // TYPE A
	Offset    int64      // from REST
	ByteRange *ByteRange // from RANG, nil for the whole file
	Announced int64      // size of an upload in bytes from ALLO, 0 if unknown

	SHA256 *[sha256.Size]byte // hash of the next upload from SITE HASH, nil for none

	textual bool // TYPE was A when REST set the offset
}

// AfterUpload returns the parameters that remain after a command that uploads a file.
func (p *TransferParameters) AfterUpload() TransferParameters {
	return TransferParameters{ASCII: p.ASCII}
}

// AfterTransfer returns the parameters that remain after a command that transfers a listing, or downloads a file.
func (p *TransferParameters) AfterTransfer() TransferParameters {
	return TransferParameters{ASCII: p.ASCII, SHA256: p.SHA256}
}

// SetType sets the type from the argument of TYPE (RFC 959, 3.1.1): text or bytes of 8 bits. It returns false for
// other types.
func (p *TransferParameters) SetType(arg string) bool {
	switch Upper(arg) {
	case "A", "A N", "AN":
		p.ASCII = true
	case "I", "L 8", "L8":
		p.ASCII = false
	default:
		return false
	}
	return true
}

// Commands returns the parameters that remain, as the commands that set them. MODE and STRU have only one value
// (RFC 959, 3.1.2 and 3.4.1).
func (p *TransferParameters) Commands() string {
	if p.ASCII {
		return "TYPE A; STRU F; MODE S"
	}
	return "TYPE I; STRU F; MODE S"
}

// SetOffset sets the offset from the argument of REST (RFC 3659, 5.3) and resets the range. It returns false if
// the argument is not a number.
func (p *TransferParameters) SetOffset(arg string) bool {
	offset, err := strconv.ParseInt(arg, 10, 64)
	if err != nil || !IsNumber(arg) {
		return false
	}
	p.Offset, p.textual, p.ByteRange = offset, p.ASCII, nil
	return true
}

// SetRange sets the range from the argument of RANG (draft-bryan-ftp-range, 3) and resets the offset. "1 0" selects the
// whole file. If the argument is invalid, SetRange selects the whole file and returns false.
func (p *TransferParameters) SetRange(arg string) bool {
	p.Offset, p.ByteRange = 0, nil
	r, ok := parseRANG(arg)
	if ok && r != WholeFile() {
		p.ByteRange = &r
	}
	return ok
}

// SetHash sets the hash from the argument of SITE HASH: SHA-256, a space and 64 hexadecimal digits. An empty argument
// removes the hash, and so does an invalid one. known is false for another algorithm, and ok for another invalid
// argument.
func (p *TransferParameters) SetHash(arg string) (known, ok bool) {
	p.SHA256 = nil
	algorithm, digits, _ := strings.Cut(arg, " ")
	switch {
	case arg == "":
		return true, true
	case !Equal(algorithm, DefaultHash):
		return false, false
	}
	sum, err := hex.DecodeString(digits)
	if err != nil || len(sum) != sha256.Size {
		return true, false
	}
	p.SHA256 = (*[sha256.Size]byte)(sum)
	return true, true
}

// WholeFile reports whether the transfer covers all bytes of the file unchanged.
func (p *TransferParameters) WholeFile() bool { return !p.ASCII && p.Offset == 0 && p.ByteRange == nil }

// TakeRange returns the range that RANG has set for HASH, and resets it.
func (p *TransferParameters) TakeRange() ByteRange {
	r := WholeFile()
	if p.ByteRange != nil {
		r, p.ByteRange = *p.ByteRange, nil
	}
	return r
}

// RestartsInText reports whether the offset counts bytes of converted text. The session refuses such an offset,
// because it would have to read the file to find the position (RFC 3659, 5.3).
func (p *TransferParameters) RestartsInText() bool {
	return p.Offset > 0 && (p.ASCII || p.textual)
}
