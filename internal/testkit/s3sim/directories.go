package s3sim

import (
	"fmt"
	"net/http"
	"strings"
)

// goesEmpty answers a request that stores an object while a directory above it loses its last one. It is nil where
// the server performs the request.
//
// Some servers keep directories, and remove empty ones. They then refuse such a request, or answer 200 and store
// nothing. MinIO deletes the parts of an upload that it refuses to complete.
func (s *Server) goesEmpty(b *bucket, q *request, e *Event) *reply {
	stores := q.Name == "PutObject" || q.Name == "CopyObject" || q.Name == "CompleteMultipartUpload"
	code := s.opts.Profile.EmptyDirectoryCode
	if !stores || !s.opts.Emptying || code == "" || b.emptyings(q.Key) == q.emptyings {
		return nil
	}
	switch {
	case q.Name == "CompleteMultipartUpload":
		if b.uploads[q.UploadID] == nil {
			return nil
		}
		delete(b.uploads, q.UploadID)
	case s.opts.Profile.FalseSuccess && e.Old == nil && b.emptyings(q.Key)%2 == 0:
		e.New = e.Old
		return s.unstored(q)
	}
	status := map[string]int{"AccessDenied": http.StatusForbidden,
		"InternalError": http.StatusInternalServerError}[code]
	if status == 0 {
		status = http.StatusConflict
	}
	return refuse(status, code)
}

// unstored is the answer of a server that has not performed a request. It has no type of a checksum.
func (s *Server) unstored(q *request) *reply {
	etag := fmt.Sprintf(`"unstored-%s"`, s.next())
	answer := ok()
	switch q.Name {
	case "CopyObject":
		answer = answerXML(
			http.StatusOK, &copyResult{XMLName: xmlName("CopyObjectResult"), ETag: etag, LastModified: stamp(s.now())})
	case "CompleteMultipartUpload":
		answer = answerXML(
			http.StatusOK, &completedResult{XMLName: xmlName("CompleteMultipartUploadResult"), Bucket: q.Bucket,
				Key: q.Key, ETag: etag})
	}
	answer.header.Set("ETag", etag)
	return answer
}

// emptied counts the directories that lose their last object with a key.
func (b *bucket) emptied(key string) {
	for dir := range directories(key) {
		if !b.holds(dir) {
			b.empty[dir]++
		}
	}
}

// holds reports whether a directory has an object.
func (b *bucket) holds(dir string) bool {
	for key := range b.objects {
		if strings.HasPrefix(key, dir) && b.current(key) != nil {
			return true
		}
	}
	return false
}

// emptyings is how often the directories above a key have lost their last object.
func (b *bucket) emptyings(key string) (n int) {
	for dir := range directories(key) {
		n += b.empty[dir]
	}
	return n
}

// directories are those above a key.
func directories(key string) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		for i := range len(key) - 1 {
			if key[i] == '/' && !yield(key[:i+1]) {
				return
			}
		}
	}
}
