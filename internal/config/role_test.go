package config

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/babelftp/babelftp/internal/config/value"
)

// Values of the role that a section does not set are inherited.
func TestInheritedRole(t *testing.T) {
	server := S3{
		AccessKeyID: "server",
		AssumeRole: AssumeRole{
			RoleARN: "arn:aws:iam::123456789012:role/ftp-{tenant}", ExternalID: "{tenant}/7",
			SessionTags: map[string]string{"tenant": "{tenant}", "stage": "live"},
		},
	}
	for name, tc := range map[string]struct {
		tenant S3
		want   string
	}{
		"all": {S3{},
			"server arn:aws:iam::123456789012:role/ftp-acme acme/7 babelftp-acme map[stage:live tenant:acme]"},
		"some": {
			S3{AssumeRole: AssumeRole{RoleARN: "arn:aws:iam::1:role/own",
				SessionTags: map[string]string{}}},
			"server arn:aws:iam::1:role/own acme/7 babelftp-acme map[]",
		},
		"keys-without-role": {S3{AccessKeyID: "own", SecretAccessKey: value.NewSecret("own")},
			"own  acme/7 babelftp-acme map[stage:live tenant:acme]"},
		"keys-with-role": {
			S3{AccessKeyID: "own", SecretAccessKey: value.NewSecret("own"),
				AssumeRole: AssumeRole{RoleARN: "arn:aws:iam::1:role/own", ExternalID: "8"}},
			"own arn:aws:iam::1:role/own 8 babelftp-acme map[stage:live tenant:acme]",
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := tc.tenant.Inherit(server)
			r := s.AssumeRole.For("acme")
			got := fmt.Sprintln(s.AccessKeyID, r.RoleARN, r.ExternalID, r.SessionName, r.SessionTags)
			if got != tc.want+"\n" {
				t.Errorf("got  %swant %s", got, tc.want)
			}
		})
	}
	if name := server.AssumeRole.For(strings.Repeat("a", 63)).SessionName; len(name) != maxSessionName {
		t.Errorf("the name of the session has %d characters", len(name))
	}
	for presign, want := range map[time.Duration]time.Duration{
		0: time.Hour, 55 * time.Minute: time.Hour, 3 * time.Hour: 3*time.Hour + RoleRenewBefore,
		24 * time.Hour: 12 * time.Hour,
	} {
		if got := RoleDuration(presign); got != want {
			t.Errorf("links of %s: got credentials for %s, want %s", presign, got, want)
		}
	}
	if server.AssumeRole.SessionTags["tenant"] != "{tenant}" {
		t.Error("the section changed")
	}
}
