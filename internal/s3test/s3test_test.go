package s3test_test

import (
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/babelftp/babelftp/internal/s3test"
)

func TestMain(m *testing.M) { s3test.Main(m) }

func TestRun(t *testing.T) {
	s3test.Run(t, func(t *testing.T, s *s3test.Server) {
		client, bucket := s.Client(), s.Bucket(t)
		_, err := client.PutObject(t.Context(), &s3.PutObjectInput{
			Bucket: &bucket, Key: aws.String("a b+c%20d.txt"), Body: strings.NewReader("x"),
		})
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("%q", s3test.Objects(t, client, bucket))
	})
}
