// Package tree renames, copies, makes and removes files and directories (S3 operations CopyObject, DeleteObject, DeleteObjects, HeadObject,
// ListObjectsV2, PutObject; UploadPartCopy by package upload).
//
// [Tree.Rename] and [Tree.Copy] copy inside S3. A directory goes in three steps: look at both directories, copy what is missing, and delete
// exactly the versions that were copied. Conditions of S3 guard each request, or else a look right before it ([profile.Profile]).
// So nothing is lost that another client stores meanwhile, and the same operation completes one that was interrupted.
package tree

import (
	"github.com/babelftp/babelftp/driver/internal/attributes"
	"github.com/babelftp/babelftp/driver/internal/fileinfo"
	"github.com/babelftp/babelftp/driver/internal/membudget"
	"github.com/babelftp/babelftp/driver/internal/quota"
	"github.com/babelftp/babelftp/driver/internal/upload"
)

// Options is what a [Tree] needs. Each field is set, but for Quotas.
type Options struct {
	fileinfo.Finder                    // the bucket, and the keys of the files
	Memory          *membudget.Budget  // of small files that are copied through this process
	Uploads         *upload.Uploader   // copies by parts
	CopyLimit       int64              // bytes of an object that S3 copies by one request
	NoOverwrite     bool               // a file must be new
	Quotas          quota.Quotas       // in which files take room
	Objects         attributes.Objects // what objects are stored with
}

// A Tree is the files and directories below a prefix of a bucket. It is safe for concurrent use.
type Tree struct {
	Options
	incomplete *incompleteRenames
}

// New returns a Tree, without a request.
func New(o Options) *Tree { return &Tree{Options: o, incomplete: &incompleteRenames{}} }
