package config

import (
	"cmp"
	"reflect"
	"regexp"

	"github.com/babelftp/babelftp/internal/config/value"
	"github.com/babelftp/babelftp/internal/config/yamlconf"
)

// S3 configures the connection to S3. Values that a tenant or a folder does not set are inherited.
type S3 struct {
	// URL of the S3 server.
	Endpoint string `yaml:"endpoint" default:"AWS"`
	// URL of the S3 server in presigned links (`presign`).
	PublicEndpoint string `yaml:"public_endpoint" default:"the value of endpoint"`
	// Region of the bucket.
	Region string `yaml:"region" default:"found by the AWS SDK"`
	// Use path-style URLs, which have the bucket in the path instead of the host name.
	PathStyle *bool `yaml:"path_style" default:"false"`
	// Capabilities of the S3 server. With `auto` they are detected.
	Profile Profile `yaml:"profile" default:"auto"`
	// Access key ID. It must be set together with `secret_access_key`.
	AccessKeyID string `yaml:"access_key_id" file:"true" default:"found by the AWS SDK"`
	// Secret access key.
	SecretAccessKey value.Secret `yaml:"secret_access_key" default:"found by the AWS SDK"`
	// IAM role whose temporary credentials are used for the bucket (AWS STS, AssumeRole). `{tenant}` is replaced by
	// the name of the tenant.
	AssumeRole AssumeRole `yaml:"assume_role"`
}

// IsSet reports whether any key of the section is set.
func (s *S3) IsSet() bool { return !reflect.ValueOf(*s).IsZero() }

// A Profile names the capabilities of an S3 server, see docs/s3-servers.md.
type Profile string

// AutoProfile detects the profile.
const AutoProfile Profile = "auto"

// Profiles returns the names of all profiles in the table of package driver/profile.
func Profiles() []Profile {
	return []Profile{"aws", "aws-directory", "minio", "ceph", "r2", "gcs", "versitygw", "swift", "seaweedfs",
		"backblaze", "scaleway", "ovh", "alibaba", "tencent", "strict"}
}

// Values implements [yamlconf.Enum].
func (Profile) Values() []string {
	return yamlconf.EnumValues(append([]Profile{AutoProfile}, Profiles()...)...)
}

// Inherit returns s with unset values filled from other.
func (s S3) Inherit(other S3) S3 {
	s.Endpoint = cmp.Or(s.Endpoint, other.Endpoint)
	s.PublicEndpoint = cmp.Or(s.PublicEndpoint, other.PublicEndpoint)
	s.Region = cmp.Or(s.Region, other.Region)
	s.Profile = cmp.Or(s.Profile, other.Profile)
	if s.PathStyle == nil {
		s.PathStyle = other.PathStyle
	}
	if s.AccessKeyID == "" { // the two keys belong together, and to the role that they assume
		s.AccessKeyID, s.SecretAccessKey = other.AccessKeyID, other.SecretAccessKey
	} else {
		other.AssumeRole.RoleARN = ""
	}
	s.AssumeRole = s.AssumeRole.inherit(other.AssumeRole)
	return s
}

// regionName matches regions, which become a part of the host name of AWS.
var regionName = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9_-]{0,61}[A-Za-z0-9])?$`)

// check validates the section at p, which is used for the buckets of these tenants.
func (s *S3) check(v *validator, p yamlconf.Path, tenants []string) {
	v.serverURL(p.Child("endpoint"), s.Endpoint)
	v.serverURL(p.Child("public_endpoint"), s.PublicEndpoint)
	if s.Region != "" && !regionName.MatchString(s.Region) {
		v.report(p.Child("region"), "%q is not a region: write it like eu-central-1", s.Region)
	}
	id, secret := p.Child("access_key_id"), p.Child("secret_access_key")
	switch {
	case s.AccessKeyID == "" && !s.SecretAccessKey.Empty():
		v.report(id, "is missing: it must be set together with %s", secret)
	case s.AccessKeyID != "" && s.SecretAccessKey.Empty():
		v.report(secret, "is missing: it must be set together with %s", id)
	}
	s.AssumeRole.check(v, p.Child("assume_role"), tenants)
}
