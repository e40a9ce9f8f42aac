package wire

import (
	"strconv"
)

// TransferParameters are what TYPE, REST, RANG and ALLO have set for the next transfer.
//
// The next transfer command ends all but the type, also if it fails. A client that
// tries again sends REST again (RFC 3659 5.3). Other commands may come between, because
// most clients send REST before PASV.
type TransferParameters struct {
	ASCII     bool       // TYPE A
	Offset    int64      // of REST
	ByteRange *ByteRange // of RANG, nil for the whole file
	Announced int64      // size of an upload in bytes, from ALLO; 0 where it is not known

	textual bool // whether TYPE was A when REST gave the offset
}

// AfterTransfer returns the parameters that stay after a transfer command.
func (p *TransferParameters) AfterTransfer() TransferParameters {
	return TransferParameters{ASCII: p.ASCII}
}

// SetType takes the argument of TYPE (RFC 959 3.1.1): text or bytes of 8 bits. It returns
// false for any other type.
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

// Commands returns the parameters that stay, as the commands that set them. MODE and STRU
// have one value each (RFC 959 3.1.2 and 3.4.1).
func (p *TransferParameters) Commands() string {
	if p.ASCII {
		return "TYPE A; STRU F; MODE S"
	}
	return "TYPE I; STRU F; MODE S"
}

// SetOffset takes the argument of REST (RFC 3659 5.3), which replaces that of RANG. It
// returns false for an argument that is no number.
func (p *TransferParameters) SetOffset(arg string) bool {
	offset, err := strconv.ParseInt(arg, 10, 64)
	if err != nil || !IsNumber(arg) {
		return false
	}
	p.Offset, p.textual, p.ByteRange = offset, p.ASCII, nil
	return true
}

// SetRange takes the argument of RANG (draft-bryan-ftp-range 3), which replaces that of
// REST. "1 0" and a wrong argument mean the whole file. It returns false for a wrong one.
func (p *TransferParameters) SetRange(arg string) bool {
	p.Offset, p.ByteRange = 0, nil
	r, ok := parseRANG(arg)
	if ok && r != WholeFile() {
		p.ByteRange = &r
	}
	return ok
}

// TakeRange returns the range that RANG has set for HASH, and forgets it.
func (p *TransferParameters) TakeRange() ByteRange {
	r := WholeFile()
	if p.ByteRange != nil {
		r, p.ByteRange = *p.ByteRange, nil
	}
	return r
}

// RestartsInText reports whether the offset counts bytes of text. The session must read
// the file to find an offset in converted lines (RFC 3659 5.3), so it refuses that.
func (p *TransferParameters) RestartsInText() bool {
	return p.Offset > 0 && (p.ASCII || p.textual)
}
