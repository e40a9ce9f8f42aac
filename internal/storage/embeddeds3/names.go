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
	// maxKey is the maximum length of a key in S3, in bytes. versitygw accepts longer ones.
	maxKey = 1024

	// maxSegment is the maximum length of a file name, in bytes, on file systems with extended attributes.
	maxSegment = 255
)

// refuseNames responds 400 to a request for a key that no file can have. The posix backend would confuse some of these
// keys with others ("a//b" and "a/./b" with "a/b"), hide some, or fail after creating a part of the path.
func refuseNames(c fiber.Ctx) error {
	path, err := url.PathUnescape(string(c.Request().URI().PathOriginal()))
	if err != nil {
		return c.Next() // versitygw reports the error
	}
	_, key, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/")
	refusal := checkKey(key)
	if refusal == nil {
		return c.Next()
	}
	requestID, hostID := utils.EnsureRequestIDs(c)
	return c.Status(refusal.StatusCode()).Type("xml").Send(refusal.XMLBody(requestID, hostID))
}

// checkKey returns an error if a key cannot be stored. An empty key, as in a request for a bucket, is valid.
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
