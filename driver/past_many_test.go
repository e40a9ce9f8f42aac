package driver_test

import (
	"fmt"
	"io"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/babelftp/babelftp/driver"
	"github.com/babelftp/babelftp/internal/testkit/must"
)

// manyVersions is an S3 server with a directory of many files with many versions each. It generates its listings on
// request, and supports nothing else.
type manyVersions struct{ keys, versions, requests int }

// pastEpoch returns the time of the first versions. Further versions follow every minute.
func pastEpoch() time.Time { return time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC) }

func (m *manyVersions) Do(request *http.Request) (*http.Response, error) {
	m.requests++
	var page strings.Builder
	page.WriteString("<ListVersionsResult><EncodingType>url</EncodingType>")
	from, q := 0, request.URL.Query()
	if key := q.Get("key-marker"); key != "" {
		var file, version int
		if _, err := fmt.Sscanf(key+" "+q.Get("version-id-marker"), "dir/%d %d", &file, &version); err != nil {
			return nil, err
		}
		from = file*m.versions + m.versions - version
	}
	const size = 1000
	for i := from; i < min(from+size, m.keys*m.versions); i++ {
		file, version := i/m.versions, m.versions-1-i%m.versions
		fmt.Fprintf(&page, "<Version><Key>dir/%06d</Key><VersionId>%d</VersionId><LastModified>%s</LastModified>"+
			"<ETag>&quot;%032x&quot;</ETag><Size>%d</Size></Version>", file, version,
			pastEpoch().Add(time.Duration(version)*time.Minute).Format(time.RFC3339), i, version)
	}
	if last := from + size - 1; last < m.keys*m.versions-1 {
		fmt.Fprintf(&page, "<IsTruncated>true</IsTruncated><NextKeyMarker>dir/%06d</NextKeyMarker>"+
			"<NextVersionIdMarker>%d</NextVersionIdMarker>", last/m.versions, m.versions-1-last%m.versions)
	}
	page.WriteString("</ListVersionsResult>")
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Request: request,
		Body: io.NopCloser(strings.NewReader(page.String()))}, nil
}

// TestPastOfManyVersions lists a directory with many versions, with the memory of a few pages. A million versions
// (100,000 files with ten versions each) take 1,000 requests, 4 MiB of heap and 12 s of CPU time.
func TestPastOfManyVersions(t *testing.T) {
	server := &manyVersions{keys: 10_000, versions: 10}
	client := s3.New(s3.Options{Region: "us-east-1", HTTPClient: server, UsePathStyle: true,
		BaseEndpoint: aws.String("http://s3.invalid"), Credentials: credentials.NewStaticCredentialsProvider("a", "b", "")})
	p, _ := driver.ProfileNamed("aws")
	operations := 0
	files, err := driver.New(client, "bucket", &driver.Options{
		Profile: p, BeginOperation: func() (func(), error) { operations++; return func() { operations-- }, nil },
	})
	must.OK(t, err)
	heap := func() uint64 {
		var memory runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&memory)
		return memory.HeapAlloc
	}
	begin, before := time.Now(), heap() // including the servers of other tests
	moment := driver.Moment{Time: pastEpoch().Add(4*time.Minute + 30*time.Second)}
	entries, err := files.At(moment).List(t.Context(), "/dir")
	must.OK(t, err)
	if operations != 1 {
		t.Errorf("an earlier listing took %d operations", operations)
	}
	n, most := 0, uint64(0)
	for info, err := range entries {
		must.OK(t, err)
		if want := fmt.Sprintf("%06d", n); info.Name() != want || info.Size() != 4 {
			t.Fatalf("%s: listed size %d, want %s", info.Name(), info.Size(), want)
		}
		if n++; n%2_000 == 0 {
			most = max(most, heap())
		}
	}
	t.Logf("%d files, %d requests, %v, %d MiB of heap, %d before", n, server.requests, time.Since(begin),
		most>>20, before>>20)
	if n != server.keys || server.requests > n*server.versions/1000 || operations != 0 {
		t.Errorf("%d files listed with %d requests, %d operations still running", n, server.requests, operations)
	}
	if most > before+64<<20 {
		t.Errorf("heap of %d MiB, %d before", most>>20, before>>20)
	}
}
