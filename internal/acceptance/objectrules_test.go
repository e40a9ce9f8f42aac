package acceptance_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/babelftp/babelftp/internal/testkit/must"
	"github.com/babelftp/babelftp/internal/testkit/s3test"
)

// objectRules are the rules of acme.
const objectRules = `    objects:
      tags: {source: ftp}
      rules:
        - path: /in/*/raw
          set: {tags: {stage: raw, by: "{user}"}, metadata: {client: "{address}", name: "{stem}"}}
        - user: "al*"
          set: {tags: {stage: other}, content_type: application/x-own, cache_control: no-store}
`

// Objects get their attributes by the path and the user, at each way of storing them.
func TestObjectRules(t *testing.T) {
	t.Parallel()
	s3test.Run(t, func(t *testing.T, storage *s3test.Server) {
		t.Parallel()
		s := newSite(t, storage, objectRules)
		c := s.alice(t)
		for _, dir := range []string{"in", "in/a", "in/a/raw", "done"} {
			c.Command(257, "MKD "+dir)
		}
		want := func(key, tags, metadata, contentType string) {
			t.Helper()
			bucket, key := s.buckets[acme], prefix+key
			head, err := s.client.HeadObject(t.Context(), &s3.HeadObjectInput{Bucket: &bucket, Key: &key})
			must.OK(t, err)
			out, err := s.client.GetObjectTagging(t.Context(), &s3.GetObjectTaggingInput{Bucket: &bucket, Key: &key})
			must.OK(t, err)
			var got []string
			for _, tag := range out.TagSet {
				got = append(got, *tag.Key+"="+*tag.Value)
			}
			slices.Sort(got)
			if text := strings.Join(got, " "); text != tags {
				t.Errorf("%s has the tags %q, want %q", key, text, tags)
			}
			if text := head.Metadata["client"] + " " + head.Metadata["name"]; text != metadata {
				t.Errorf("%s has the metadata %q, want %q", key, text, metadata)
			}
			if aws.ToString(head.ContentType) != contentType {
				t.Errorf("%s has the type %q, want %q", key, aws.ToString(head.ContentType), contentType)
			}
		}
		c.Store("in/a/raw/Übung.txt", "content")
		want("in/a/raw/Übung.txt", "by=alice source=ftp stage=raw", "127.0.0.1 %C3%9Cbung", "application/x-own")
		c.Store("done/large", string(content(6<<20)))
		want("done/large", "source=ftp stage=other", " ", "application/x-own")
		c.Command(350, "RNFR in/a/raw/Übung.txt")
		c.Command(250, "RNTO done/b.txt")
		want("done/b.txt", "by=alice source=ftp stage=other", "127.0.0.1 %C3%9Cbung", "application/x-own")
		c.Command(350, "SITE CPFR done/large")
		c.Command(250, "SITE CPTO in/a/raw/large")
		want("in/a/raw/large", "by=alice source=ftp stage=raw", "127.0.0.1 large", "application/x-own")
	})
}
