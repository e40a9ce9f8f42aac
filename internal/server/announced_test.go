package server

import (
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/babelftp/babelftp/internal/testkit/must"
)

// If all parts of an upload must have the same size, the size announced with ALLO decides: 13 MiB for 60 GiB. An
// upload that turns out to be smaller than one part takes one request.
func TestAnnouncedSize(t *testing.T) {
	s, cfg := simulated(t)
	cfg.S3.Profile = "r2"
	c := session(t, start(t, cfg, Options{AWS: s.AWSConfig()}), "alice")
	for name, announced := range map[string]string{"announced": "64424509440", "not-announced": "0"} {
		c.Command(200, "TYPE I")
		conn := c.Data()
		c.Command(200, "ALLO "+announced)
		c.Command(150, "STOR "+name)
		if _, err := conn.Write(make([]byte, 6<<20)); err != nil {
			t.Fatal(err)
		}
		_ = conn.Close()
		c.Reply(226)
		stored, err := s.Client().HeadObject(t.Context(), &s3.HeadObjectInput{
			Bucket: &cfg.Tenants["acme"].Bucket, Key: aws.String("inbox/alice/" + name),
		})
		must.OK(t, err)
		if parts := strings.Contains(*stored.ETag, "-"); parts != (name == "not-announced") {
			t.Errorf("%s: ETag is %s", name, *stored.ETag)
		}
	}
}
