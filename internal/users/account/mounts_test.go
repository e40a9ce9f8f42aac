package account

import (
	"slices"
	"strings"
	"testing"

	"golang.org/x/text/unicode/norm"

	"github.com/babelftp/babelftp/internal/storage/s3client"
)

// The root of a user may contain folders, be inside a folder, or be a folder.
func TestMountsOf(t *testing.T) {
	b := &s3client.Bucket{Name: "acme", Prefix: "inbox/"}
	for _, folder := range []string{"/archive", "/archive/old", "/team/caf\u00e9", "/team/e\u0301t"} {
		b.Folders = append(
			b.Folders, &s3client.Bucket{Name: "of" + strings.ReplaceAll(folder, "/", "-"), Folder: folder,
				Prefix: "p/"})
	}
	for root, want := range map[string]string{
		"": "/ acme inbox/, /archive of-archive p/, /archive/old of-archive-old p/, " +
			"/team/caf\u00e9 of-team-caf\u00e9 p/, /team/\u00e9t of-team-e\u0301t p/",
		"/": "/ acme inbox/, /archive of-archive p/, /archive/old of-archive-old p/, " +
			"/team/caf\u00e9 of-team-caf\u00e9 p/, /team/\u00e9t of-team-e\u0301t p/",
		"/team":                  "/ acme inbox/team/, /caf\u00e9 of-team-caf\u00e9 p/, /\u00e9t of-team-e\u0301t p/",
		"/other/e\u0301":         "/ acme inbox/other/e\u0301/",
		"/archive":               "/ of-archive p/, /old of-archive-old p/",
		"/archive/2024/e\u0301":  "/ of-archive p/2024/e\u0301/",
		"/archive/old":           "/ of-archive-old p/",
		"/archive/old/a/b":       "/ of-archive-old p/a/b/",
		"/archives":              "/ acme inbox/archives/",
		"/team/cafe\u0301/inner": "/ of-team-caf\u00e9 p/inner/",
	} {
		t.Run(root, func(t *testing.T) {
			var got []string
			for _, m := range userMounts(b, root, norm.NFC.String) {
				got = append(got, m.at+" "+m.bucket.Name+" "+m.prefix)
			}
			slices.Sort(got)
			if strings.Join(got, ", ") != want {
				t.Errorf("got  %s\nwant %s", strings.Join(got, ", "), want)
			}
		})
	}
}
