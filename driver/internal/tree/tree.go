// Package tree renames, copies, makes and removes files and directories (S3 operations CopyObject, DeleteObject,
// DeleteObjects, HeadObject, ListObjectsV2, PutObject; UploadPartCopy by package upload).
//
// [Tree.Rename] and [Tree.Copy] copy inside S3. A directory takes three steps: check both directories, copy what is
// missing, and delete exactly the versions that were copied. Each request has a condition, or follows right after a
// check if the server does not support the condition ([profile.Profile]). So a file with other bytes that another
// client stores meanwhile stays, and the same operation completes one that was interrupted.
package tree

import (
	"iter"

	"github.com/babelftp/babelftp/driver/internal/file"
	"github.com/babelftp/babelftp/driver/internal/membudget"
	"github.com/babelftp/babelftp/driver/internal/quota"
	"github.com/babelftp/babelftp/driver/internal/s3api"
	"github.com/babelftp/babelftp/driver/internal/s3object"
	"github.com/babelftp/babelftp/driver/internal/upload"
)

// Options is what a [Tree] needs. Only Quotas may be empty.
type Options struct {
	// Finder has the bucket, and the keys of the files.
	file.Finder
	// Memory is for small files whose copies go through this process.
	Memory *membudget.Budget
	// Uploads copies files by parts.
	Uploads *upload.Uploader
	// CopyLimit is how many bytes of an object S3 copies by one request.
	CopyLimit int64
	// NoOverwrite refuses a copy or a rename to the name of a file.
	NoOverwrite bool
	// Quotas are the usages and limits for which the bytes of files count.
	Quotas quota.Quotas
	// BeginOperation allows an operation on a whole directory, or on many levels of them; end is called when that has
	// ended.
	BeginOperation func() (end func(), err error)
	// Moves are those of the endpoint.
	Moves *Moves
	// Objects is what objects are stored with.
	Objects s3object.Objects
}

// A Tree is the files and directories below a prefix of a bucket. It is safe for concurrent use.
type Tree struct{ Options }

// stored leaves out the objects of the server itself. Where a directory holds the root of another tenant, or of a
// folder, these are the journal of its uploads and its events that wait. They stay where they are found, whatever
// happens to the directory.
func stored(versions iter.Seq2[s3api.Version, error]) iter.Seq2[s3api.Version, error] {
	return func(yield func(s3api.Version, error) bool) {
		for v, err := range versions {
			if !s3object.IsReserved(v.Key) && !yield(v, err) {
				return
			}
		}
	}
}

// New returns a Tree, without a request.
func New(o Options) *Tree { return &Tree{o} }
