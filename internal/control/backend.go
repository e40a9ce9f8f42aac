package control

import (
	"context"
	"errors"
	"io/fs"
	"iter"
	"net"

	"github.com/spf13/afero"
	"golang.org/x/text/language"
)

// ErrLoginRefused is what a Backend's Login returns, perhaps wrapped, for a
// wrong user name or password (reply 530). Any other error means that the
// login could not be decided and may be tried again.
var ErrLoginRefused = errors.New("login refused")

// A Backend knows the tenants and their users.
type Backend interface {
	// Host returns the tenant that answers to a virtual host (RFC 7151),
	// and false where there is none.
	Host(name string) (*Tenant, bool)
	// Login checks a user's password and opens the storage. The storage lives
	// until ctx, the session's, is cancelled.
	Login(ctx context.Context, req *LoginRequest) (*Login, error)
}

// A Tenant is what the control connection needs to know of one.
type Tenant struct {
	Name string
	// DefaultLanguage is used until the client says LANG; the zero value
	// means the server's default.
	DefaultLanguage language.Tag
	// Greeting is shown after HOST and after login: language tag to text.
	Greeting map[string]string
}

// A LoginRequest is what a client showed of itself.
type LoginRequest struct {
	Host       string // the virtual host chosen with HOST, empty without
	User       string
	Password   string
	RemoteAddr net.Addr
	Encrypted  bool // whether the control connection is under TLS
	// BeforeCommit must be asked before an upload becomes visible: it returns
	// an error when the client is no longer there.
	BeforeCommit func(context.Context) error
}

// A Login is an accepted user.
type Login struct {
	User    string
	Tenant  *Tenant
	Storage Storage
	Home    string // the working directory after login, absolute; empty means "/"
}

// Storage is what a session asks of a tenant's bucket: an afero file system
// and the operations that save S3 requests by saying what they want. Errors
// are classified by errors.Is with the values of io/fs, syscall and context.
type Storage interface {
	afero.Fs
	// OpenAt opens a file for one transfer that starts at offset bytes. A file
	// with a method Abort(error) is aborted when the transfer is; it may be
	// called while another method runs.
	OpenAt(name string, flag int, offset int64) (afero.File, error)
	// StatFile looks for a file only.
	StatFile(name string) (fs.FileInfo, error)
	// StatDir looks for a directory only.
	StatDir(name string) (fs.FileInfo, error)
	// ReadDirSeq has read the first page of a directory when it returns, and
	// reads the others while the sequence, usable once, is ranged over.
	ReadDirSeq(name string) (iter.Seq2[fs.FileInfo, error], error)
	// RemoveFile removes a file only.
	RemoveFile(name string) error
	// RemoveDir removes an empty directory only.
	RemoveDir(name string) error
}
