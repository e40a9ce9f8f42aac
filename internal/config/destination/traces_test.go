package destination

import (
	"maps"
	"strings"
	"testing"

	"github.com/babelftp/babelftp/internal/config/value"
)

const token = "3f2a9c81d0"

func TestTracesProblems(t *testing.T) {
	headers := value.NewSecret
	for name, tc := range map[string]struct {
		traces Traces
		want   map[string]string // parts of the problems, by key
	}{
		"none":        {Traces{}, nil},
		"collector":   {Traces{Endpoint: "http://collector:4318", Headers: headers("Authorization: Bearer " + token + "\n\nX-Team: ftp\n")}, nil},
		"path":        {Traces{Endpoint: "https://otlp.example.com/tenant/"}, nil},
		"no-endpoint": {Traces{Headers: headers("Authorization: x")}, map[string]string{"endpoint": "is missing"}},
		"no-scheme":   {Traces{Endpoint: "collector:4318"}, map[string]string{"endpoint": "write it like http://collector:4318"}},
		"other":       {Traces{Endpoint: "grpc://collector:4317"}, map[string]string{"endpoint": "write it like http://collector:4318"}},
		"credentials": {Traces{Endpoint: "http://me:" + token + "@collector:4318"}, map[string]string{"endpoint": "credentials in headers"}},
		"no-colon":    {Traces{Endpoint: "http://collector:4318", Headers: headers("X-Team: ftp\n" + token)}, map[string]string{"headers": "line 2 is no header"}},
		"bad-name":    {Traces{Endpoint: "http://collector:4318", Headers: headers("X Team: " + token)}, map[string]string{"headers": "line 1 is no header"}},
		"bad-value":   {Traces{Endpoint: "http://collector:4318", Headers: headers("X-Team: a\x00" + token)}, map[string]string{"headers": "line 1 is no header"}},
		"ca-file":     {Traces{Endpoint: "https://collector:4318", CAFile: "testdata/none.pem"}, map[string]string{"ca_file": "none.pem"}},
	} {
		t.Run(name, func(t *testing.T) {
			got := tc.traces.Problems()
			if len(got) != len(tc.want) {
				t.Fatalf("problems are %v", got)
			}
			for key := range maps.Keys(tc.want) {
				if !strings.Contains(got[key], tc.want[key]) {
					t.Errorf("%s: %q, want %q", key, got[key], tc.want[key])
				}
				if strings.Contains(got[key], token) {
					t.Errorf("%s shows a secret: %s", key, got[key])
				}
			}
		})
	}
}

func TestTracesHeader(t *testing.T) {
	header, err := Traces{Headers: value.NewSecret("authorization: Bearer a:b\r\nX-Team: ftp\nX-Team: s3")}.Header()
	if err != nil {
		t.Fatal(err)
	}
	if len(header) != 2 || header.Get("Authorization") != "Bearer a:b" || strings.Join(header["X-Team"], " ") != "ftp s3" {
		t.Errorf("%v", header)
	}
}
