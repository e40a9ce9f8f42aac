package embeddeds3

import (
	"net/url"
	"strings"

	"github.com/gofiber/fiber/v3"
	"github.com/versity/versitygw/backend/posix"
	"github.com/versity/versitygw/s3api/utils"
	"github.com/versity/versitygw/s3err"
)

const (
	// maxKey is the longest key, in bytes, that S3 has. versitygw takes longer ones.
	maxKey = 1024

	// maxSegment is the longest file name, in bytes, of the file systems that have extended attributes.
	maxSegment = 255
)

// refuseNames answers 400 to a request for an object whose name no file can have. The posix backend would confuse
// some of these keys with another one ("a//b" and "a/./b" with "a/b"), hide others, or fail when half of a path is
// made.
func refuseNames(c fiber.Ctx) error {
	path, err := url.PathUnescape(string(c.Request().URI().PathOriginal()))
	if err != nil {
		return c.Next() // versitygw reports it
	}
	_, key, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/")
	refusal := checkKey(key)
	if refusal == nil {
		return c.Next()
	}
	requestID, hostID := utils.EnsureRequestIDs(c)
	return c.Status(refusal.StatusCode()).Type("xml").Send(refusal.XMLBody(requestID, hostID))
}

// checkKey returns the error for a key that cannot be stored, or nil. An empty key, as in a request for a bucket, is
// valid.
func checkKey(key string) s3err.S3Error {
	if len(key) > maxKey {
		return s3err.GetKeyTooLongErr(int64(len(key)), maxKey)
	}
	if key == "" {
		return nil
	}
	for segment := range strings.SplitSeq(strings.TrimSuffix(key, "/"), "/") {
		switch {
		case len(segment) > maxSegment:
			return s3err.GetKeyTooLongErr(int64(len(segment)), maxSegment)
		case segment == "", segment == ".", segment == "..", segment == posix.MetaTmpDir,
			strings.Contains(segment, "\x00"):
			return s3err.GetAPIError(s3err.ErrInvalidURI)
		}
	}
	return nil
}
