package servicetest

import (
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"golang.org/x/text/language"

	"github.com/babelftp/babelftp/internal/config"
	"github.com/babelftp/babelftp/internal/config/value"
	"github.com/babelftp/babelftp/internal/testkit/must"
	"github.com/babelftp/babelftp/internal/testkit/s3test"
)

// Password is the password of every user.
const Password = "correct horse"

// PasswordHash returns an argon2id hash of Password with minimal cost, because tests log in hundreds of times.
func PasswordHash() value.Secret {
	return value.NewSecret(
		"$argon2id$v=19$m=8,t=1,p=1$4RtGSB4BBxL3TKEdVeZQWQ$+ksVq8D/o9KnRp1aLQ78v/DBAkDO6if5PXA++CTwFSo")
}

// NewConfig returns a configuration with the user alice in the tenant acme, whose bucket is new. CommitDelay is
// minimal, so that uploads are stored without delay.
func NewConfig(tb testing.TB, s *s3test.Server) *config.Config {
	tb.Helper()
	cfg := config.Default()
	cfg.Listen, cfg.MetricsListen = "127.0.0.1:0", "127.0.0.1:0"
	cfg.CommitDelay = time.Millisecond
	cfg.S3 = config.S3{
		Endpoint: s.Endpoint, Region: s.Region, PathStyle: aws.Bool(true),
		AccessKeyID: s.AccessKeyID, SecretAccessKey: value.NewSecret(s.SecretAccessKey),
	}
	cfg.Tenants = map[string]*config.Tenant{"acme": {
		Hosts:    []string{"ftp.acme.example"},
		Bucket:   s.Bucket(tb),
		Prefix:   "inbox/",
		Greeting: map[language.Tag]string{language.English: "Welcome to Acme"},
		Users:    map[string]*config.User{"alice": {PasswordHash: PasswordHash(), Home: "/alice"}},
	}}
	return cfg
}

// Encoding returns the pathname charset with this label.
func Encoding(tb testing.TB, label string) value.Encoding {
	tb.Helper()
	var e value.Encoding
	must.OK(tb, e.UnmarshalText([]byte(label)))
	return e
}
