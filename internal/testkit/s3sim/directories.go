package s3sim

import (
	"fmt"
	"net/http"
	"strings"
)

// failWhileEmptied responds to a request that stores an object while a directory above the key loses its last object.
// It returns nil if the server performs the request.
//
// Some servers store directories and remove empty ones. They then reject such a request, or respond with 200 and
// store nothing. MinIO deletes the parts of an upload that it refuses to complete.
func (s *Server) failWhileEmptied(b *bucket, q *request, e *Event) *reply {
	stores := q.Name == "PutObject" || q.Name == "CopyObject" || q.Name == "CompleteMultipartUpload"
	code := s.opts.Profile.EmptyDirectoryCode
	if !stores || !s.opts.FailWhileEmptied || code == "" || b.timesEmptied(q.Key) == q.timesEmptied {
		return nil
	}
	switch {
	case q.Name == "CompleteMultipartUpload":
		if b.uploads[q.UploadID] == nil {
			return nil
		}
		delete(b.uploads, q.UploadID)
	case s.opts.Profile.FalseSuccess && e.Old == nil && b.timesEmptied(q.Key)%2 == 0:
		e.New = e.Old
		return s.unstoredReply(q)
	}
	status := map[string]int{"AccessDenied": http.StatusForbidden,
		"InternalError": http.StatusInternalServerError}[code]
	if status == 0 {
		status = http.StatusConflict
	}
	return refuse(status, code)
}

// unstoredReply is the response to a request that the server did not perform. It contains no checksum type.
func (s *Server) unstoredReply(q *request) *reply {
	etag := fmt.Sprintf(`"unstored-%s"`, s.next())
	result := ok()
	switch q.Name {
	case "CopyObject":
		result = replyXML(
			http.StatusOK, &copyResult{XMLName: xmlName("CopyObjectResult"), ETag: etag, LastModified: stamp(s.now())})
	case "CompleteMultipartUpload":
		result = replyXML(
			http.StatusOK, &completedResult{XMLName: xmlName("CompleteMultipartUploadResult"), Bucket: q.Bucket,
				Key: q.Key, ETag: etag})
	}
	result.header.Set("ETag", etag)
	return result
}

// recordEmptied records the directories that a deleted key leaves empty.
func (b *bucket) recordEmptied(key string) {
	for dir := range directories(key) {
		if !b.holds(dir) {
			b.empty[dir]++
		}
	}
}

// holds reports whether a directory contains an object.
func (b *bucket) holds(dir string) bool {
	for key := range b.objects {
		if strings.HasPrefix(key, dir) && b.current(key) != nil {
			return true
		}
	}
	return false
}

// timesEmptied counts how often directories above a key have lost their last object.
func (b *bucket) timesEmptied(key string) (n int) {
	for dir := range directories(key) {
		n += b.empty[dir]
	}
	return n
}

// directories yields the directories above a key.
func directories(key string) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		for i := range len(key) - 1 {
			if key[i] == '/' && !yield(key[:i+1]) {
				return
			}
		}
	}
}
