package s3api

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/aws/smithy-go/middleware"

	"github.com/babelftp/babelftp/internal/testkit/must"
)

// FuzzContents compares the result of the decoder with the result of the SDK.
func FuzzContents(f *testing.F) {
	const head = `<?xml version="1.0" encoding="UTF-8"?>` + "\n" +
		`<ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/"><Prefix>d/</Prefix>`
	for _, body := range []string{
		`<Contents><Key>d/a</Key><LastModified>2024-05-06T07:08:09.123Z</LastModified><ETag>&#34;abc&#34;</ETag><Size>12</Size><StorageClass>STANDARD</StorageClass></Contents><EncodingType>url</EncodingType>`,
		`<IsTruncated>true</IsTruncated><NextContinuationToken>t&amp;u</NextContinuationToken><Contents><Key>d/a&amp;b</Key><Size>1</Size><Owner><ID>x</ID><DisplayName>y</DisplayName></Owner></Contents><Contents><Key>d/c</Key><ChecksumAlgorithm>CRC32</ChecksumAlgorithm><ChecksumAlgorithm>SHA1</ChecksumAlgorithm></Contents><CommonPrefixes><Prefix>d/Contents/</Prefix></CommonPrefixes>`,
		`<Contents> <Key>d/a</Key> <Size> 7 </Size></Contents>`,
		`<Contents><Key>d/a</Key><!-- </Contents> --></Contents>`,
		`<Contents><Key><![CDATA[d/<Contents>]]></Key></Contents>`,
		`<Contents><Key>d/a</Key></Contents><Contents a="b"><Key>d/b</Key></Contents><Contents><Key>d/c</Key></Contents>`,
		`<Contents><Key/><Size>x</Size></Contents><Contents>`,
		`<Contents><Key>d/&#233;&unknown;</Key></Contents>`,
		`<Contents><Key>d/a</Key><Key>d/b</Key><Size></Size></Contents>`,
		`<Contents><Owner><Key>d/x</Key></Owner><Key>d/a</Key></Contents>`,
		`<Other><Contents><Key>d/x</Key></Contents></Other>`,
	} {
		f.Add(head + body + `</ListBucketResult>`)
	}
	f.Fuzz(func(t *testing.T, body string) {
		client, in := clientFor(body), &s3.ListObjectsV2Input{Bucket: aws.String("bucket")}
		want, wantErr := client.ListObjectsV2(t.Context(), in)
		got, gotErr := client.ListObjectsV2(t.Context(), in, new(listDecoder).install)
		if wantErr != nil {
			return // not a valid response
		}
		if gotErr != nil {
			t.Fatal(gotErr)
		}
		for _, objects := range [][]types.Object{got.Contents, want.Contents} {
			for i := range objects { // the driver does not use the other fields
				o := &objects[i]
				o.Owner, o.ChecksumAlgorithm, o.ChecksumType, o.RestoreStatus = nil, nil, "", nil
			}
		}
		same := slices.EqualFunc(got.Contents, want.Contents, func(a, b types.Object) bool {
			return reflect.DeepEqual(a, b)
		})
		got.Contents, want.Contents, got.ResultMetadata, want.ResultMetadata = nil, nil, middleware.Metadata{},
			middleware.Metadata{}
		if !same || !reflect.DeepEqual(got, want) {
			t.Errorf("%+v\nthe SDK reads %+v", got, want)
		}
	})
}

// Some servers write characters that XML does not allow where a listing repeats its own prefix. The decoder reads
// everything else, and each such character becomes U+FFFD.
func TestInvalidXMLCharacters(t *testing.T) {
	for name, prefix := range map[string]string{
		"raw": "d\x01", "reference": "d&#x01;", "decimal": "d&#27;", "noncharacter": "d\ufffe",
		"surrogate": "d&#xD800;", "too-large": "d&#x110000;",
	} {
		t.Run(name, func(t *testing.T) {
			client := clientFor(
				`<ListBucketResult><EncodingType>url</EncodingType><Prefix>` + prefix +
					`</Prefix><Delimiter>&#47;</Delimiter>` +
					`<Contents><Key>d%01/&#65;</Key><Size>7</Size></Contents><CommonPrefixes><Prefix>d%01/b/</Prefix></CommonPrefixes></ListBucketResult>`)
			out, err := client.ListObjectsV2(
				t.Context(), &s3.ListObjectsV2Input{Bucket: aws.String("bucket")}, new(listDecoder).install)
			must.OK(t, err)
			if got := []string{*out.Prefix, *out.Delimiter, *out.Contents[0].Key,
				*out.CommonPrefixes[0].Prefix}; !slices.Equal(got, []string{
				"d\ufffd", "/", "d%01/A", "d%01/b/",
			}) {
				t.Errorf("got %q", got)
			}
		})
	}
}

// Ceph's continuation token is the last key of the page, without percent-encoding.
func TestTokenWithInvalidXMLCharacters(t *testing.T) {
	for written, want := range map[string]string{
		"d/&#x02;b": "d/\x02b", "d/&#x1b;&amp;\ufffe": "d/\x1b&\ufffe", "d/&#x0a;&#x0d;": "d/\n\r",
		"b3BhcXVl": "b3BhcXVl",
	} {
		t.Run(written, func(t *testing.T) {
			client := clientFor(
				`<ListBucketResult><EncodingType>url</EncodingType><Prefix>d/</Prefix><IsTruncated>true</IsTruncated>` +
					`<CommonPrefixes><Prefix>d%2F%01%2F</Prefix></CommonPrefixes><NextContinuationToken>` + written +
					`</NextContinuationToken></ListBucketResult>`)
			out, err := client.ListObjectsV2(
				t.Context(), &s3.ListObjectsV2Input{Bucket: aws.String("bucket")}, new(listDecoder).install)
			must.OK(t, err)
			if got := *out.NextContinuationToken; got != want || len(out.CommonPrefixes) != 1 {
				t.Errorf("got %q, with %d prefixes", got, len(out.CommonPrefixes))
			}
		})
	}
}

// clientFor returns a client whose server sends the same response to every request.
func clientFor(body string) *s3.Client {
	return s3.New(s3.Options{
		Region: "us-east-1", Credentials: aws.AnonymousCredentials{}, BaseEndpoint: aws.String("http://s3.example"),
		UsePathStyle:     true,
		RetryMaxAttempts: 1, HTTPClient: server(body),
	})
}

type server string

func (s server) Do(r *http.Request) (*http.Response, error) {
	return &http.Response{
		Status: "200 OK", StatusCode: http.StatusOK, Request: r,
		Header: http.Header{"Content-Type": {"application/xml"}},
		Body:   io.NopCloser(strings.NewReader(string(s))), ContentLength: int64(len(s)),
	}, nil
}

// minioPage returns a page with this number of objects, as MinIO writes it.
func minioPage(objects int) string {
	var b strings.Builder
	b.WriteString(
		`<?xml version="1.0" encoding="UTF-8"?>` + "\n" +
			`<ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/">` +
			`<Name>bucket</Name><Prefix>d/</Prefix><KeyCount>1000</KeyCount><MaxKeys>1000</MaxKeys><Delimiter>/</Delimiter><IsTruncated>false</IsTruncated>`)
	for i := range objects {
		fmt.Fprintf(&b, `<Contents><Key>d/file-%06d.txt</Key><LastModified>2024-05-06T07:08:09.123Z</LastModified>`+
			`<ETag>&#34;9dd4e461268c8034f5c8564e155c67a6&#34;</ETag><Size>%d</Size><StorageClass>STANDARD</StorageClass></Contents>`, i, i)
	}
	return b.String() + `<EncodingType>url</EncodingType></ListBucketResult>`
}

// TestContentsAreDecoded checks that the decoder reads a usual response without the SDK.
func TestContentsAreDecoded(t *testing.T) {
	objects, rest, ok := cutObjects([]byte(minioPage(2)))
	if !ok || len(objects) != 2 || strings.Contains(string(rest), "Key>") {
		t.Fatalf("got %d objects, %v, rest %s", len(objects), ok, rest)
	}
	want := types.Object{
		Key: aws.String("d/file-000001.txt"), Size: aws.Int64(1),
		LastModified: aws.Time(time.Date(2024, 5, 6, 7, 8, 9, 123e6, time.UTC)),
		ETag:         aws.String(`"9dd4e461268c8034f5c8564e155c67a6"`), StorageClass: "STANDARD",
	}
	if !reflect.DeepEqual(objects[1], want) {
		t.Errorf("got %+v, want %+v", objects[1], want)
	}
}

// BenchmarkPage decodes a page of 1,000 objects with the decoder and, for comparison, with the SDK alone.
func BenchmarkPage(b *testing.B) {
	client := clientFor(minioPage(1000))
	read := func(b *testing.B, opts ...func(*s3.Options)) {
		for b.Loop() {
			if _, err := client.ListObjectsV2(
				context.Background(), &s3.ListObjectsV2Input{Bucket: aws.String("bucket")}, opts...); err != nil {
				b.Fatal(err)
			}
		}
	}
	b.Run("cut", func(b *testing.B) { read(b, new(listDecoder).install) })
	b.Run("sdk", func(b *testing.B) { read(b) })
}
