package s3client

import (
	"net/http"
	"testing"
	"time"
)

func TestRepairXML(t *testing.T) {
	for _, test := range []struct{ label, body, want string }{
		{"valid", "<A><Size>1</Size><IsTruncated>true</IsTruncated><Key> k </Key></A>",
			"<A><Size>1</Size><IsTruncated>true</IsTruncated><Key> k </Key></A>"},
		{"declaration", "\ufeff\n<?xml version=\"1.1\" encoding='UTF-8' ?>\n<A/>", "\n<A/>"},
		{"charset", "<?xml version=\"1.0\" encoding=\"ISO-8859-1\"?><Key>\xe9</Key>", "<Key>é</Key>"},
		{"unknown-charset", "<?xml version=\"1.0\" encoding=\"none\"?><Key>é</Key>", "<Key>é</Key>"},
		{"white-space", "<A><Size>\n 7 </Size><ETag> x </ETag></A>", "<A><Size>7</Size><ETag>x</ETag></A>"},
		{"empty", "<A><Size></Size><LastModified/><KeyCount /></A>", "<A></A>"},
		{"no-number", "<A><Size>many</Size><MaxKeys>9</MaxKeys></A>", "<A><MaxKeys>9</MaxKeys></A>"},
		{"booleans", "<A><IsTruncated>False</IsTruncated><IsLatest>1</IsLatest></A>",
			"<A><IsTruncated>false</IsTruncated><IsLatest>true</IsLatest></A>"},
		{"date", "<LastModified>Tue, 13 Mar 2018 17:25:04 GMT</LastModified>",
			"<LastModified>2018-03-13T17:25:04Z</LastModified>"},
		{"namespaces", `<s3:Size>+7 </s3:Size><Size xmlns="x">7 </Size>`, `<s3:Size>+7</s3:Size><Size xmlns="x">7</Size>`},
		{"other-elements-inside", "<Size><Unit/>7</Size>", "<Size><Unit/>7</Size>"},
		{"prefixes", "<L><Prefix></Prefix><CommonPrefixes><Prefix>a/</Prefix>\n<Prefix>b/</Prefix></CommonPrefixes></L>",
			"<L><Prefix></Prefix><CommonPrefixes><Prefix>a/</Prefix>\n</CommonPrefixes><CommonPrefixes><Prefix>b/</Prefix></CommonPrefixes></L>"},
		{"cut", "<A><Size>12", "<A><Size>12"},
		{"tag-cut", "<A><Siz", "<A><Siz"},
		{"text", "no XML", "no XML"},
	} {
		t.Run(test.label, func(t *testing.T) {
			if got := string(repairXML([]byte(test.body))); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

func TestParseDate(t *testing.T) {
	want := time.Date(2024, 10, 11, 13, 22, 41, 0, time.UTC)
	for _, text := range []string{
		"2024-10-11T13:22:41Z", "2024-10-11T13:22:41.000Z", "2024-10-11T13:22:41.000000Z", "2024-10-11T13:22:41",
		"2024-10-11T15:22:41+02:00", "2024-10-11T15:22:41+0200", "2024-10-11 13:22:41", "2024-10-11 13:22:41 UTC",
		"2024-10-11 15:22:41 +0200", ":2024-10-11T13:22:41Z", "20241011T132241Z", "Fri, 11 Oct 2024 13:22:41 GMT",
		"Fri, 11 Oct 2024 13:22:41 UTC", "Fri, 11 Oct 2024 15:22:41 +0200", "1728652961", "1728652961000",
	} {
		if got, ok := parseDate(text); !ok || !got.Equal(want) {
			t.Errorf("%q: got %v, %t", text, got, ok)
		}
	}
	for _, text := range []string{"", "never", "2024-13-01T00:00:00Z", "0"} {
		if got, ok := parseDate(text); ok {
			t.Errorf("%q: got %v", text, got)
		}
	}
}

func TestRepairHeader(t *testing.T) {
	h := http.Header{
		"Etag": {`W/"x"`}, "Last-Modified": {"2024-10-11T13:22:41Z"}, "X-Amz-Missing-Meta": {"some"},
		"X-Amz-Tagging-Count": {" 1"}, "X-Amz-Delete-Marker": {"True"},
	}
	repairHeader(h)
	want := map[string]string{
		"Etag": `"x"`, "Last-Modified": "Fri, 11 Oct 2024 13:22:41 GMT", "X-Amz-Missing-Meta": "",
		"X-Amz-Tagging-Count": "1", "X-Amz-Delete-Marker": "true",
	}
	for name, value := range want {
		if h.Get(name) != value {
			t.Errorf("%s: got %q, want %q", name, h.Get(name), value)
		}
	}
}
