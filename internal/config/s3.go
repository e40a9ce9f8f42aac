package config

import (
	"cmp"
	"reflect"

	"github.com/babelftp/babelftp/internal/config/value"
	"github.com/babelftp/babelftp/internal/config/yamlconf"
)

// S3 is how a bucket is reached. A tenant or a folder replaces single values of the layer above.
type S3 struct {
	// URL of the S3 server.
	Endpoint string `yaml:"endpoint" default:"AWS"`
	// URL of the S3 server for those who download by links (`presign`).
	PublicEndpoint string `yaml:"public_endpoint" default:"that of endpoint"`
	// Region of the bucket.
	Region string `yaml:"region" default:"what the AWS SDK finds"`
	// Put the bucket into the path of the URL instead of the host name.
	PathStyle *bool `yaml:"path_style" default:"false"`
	// What the S3 server can do. With `auto` the server finds it out.
	Profile Profile `yaml:"profile" default:"auto"`
	// Access key ID. It needs `secret_access_key`.
	AccessKeyID string `yaml:"access_key_id" file:"true" default:"what the AWS SDK finds"`
	// Secret access key.
	SecretAccessKey value.Secret `yaml:"secret_access_key" default:"what the AWS SDK finds"`
	// Role whose temporary credentials reach the bucket (AWS STS, AssumeRole). `{tenant}` stands for the name of the
	// tenant.
	AssumeRole AssumeRole `yaml:"assume_role"`
}

// Given reports whether the section says anything.
func (s *S3) Given() bool { return !reflect.ValueOf(*s).IsZero() }

// A Profile names what an S3 server can do, see docs/s3-servers.md.
type Profile string

// AutoProfile has the server find out the profile.
const AutoProfile Profile = "auto"

// Profiles are the names that a configuration may have besides AutoProfile.
func Profiles() []Profile {
	return []Profile{"aws", "aws-directory", "minio", "ceph", "r2", "gcs", "versitygw", "swift", "seaweedfs",
		"backblaze", "scaleway", "ovh", "alibaba", "tencent", "strict"}
}

// Values implements [yamlconf.Enum].
func (Profile) Values() []string {
	return yamlconf.EnumValues(append([]Profile{AutoProfile}, Profiles()...)...)
}

// Inherit is what s says, and where it says nothing what another says.
func (s S3) Inherit(other S3) S3 {
	s.Endpoint = cmp.Or(s.Endpoint, other.Endpoint)
	s.PublicEndpoint = cmp.Or(s.PublicEndpoint, other.PublicEndpoint)
	s.Region = cmp.Or(s.Region, other.Region)
	s.Profile = cmp.Or(s.Profile, other.Profile)
	if s.PathStyle == nil {
		s.PathStyle = other.PathStyle
	}
	if s.AccessKeyID == "" { // the two keys belong together, and to the role that they may assume
		s.AccessKeyID, s.SecretAccessKey = other.AccessKeyID, other.SecretAccessKey
	} else {
		other.AssumeRole.RoleARN = ""
	}
	s.AssumeRole = s.AssumeRole.inherit(other.AssumeRole)
	return s
}

// check reports what is wrong with the section that p leads to. The tenants are those whose buckets are reached by
// it. In a tenant's section, what is missing comes from the server's.
func (s *S3) check(v *validator, p yamlconf.Path, tenants []string) {
	v.serverURL(p.Child("endpoint"), s.Endpoint)
	v.serverURL(p.Child("public_endpoint"), s.PublicEndpoint)
	id, secret := p.Child("access_key_id"), p.Child("secret_access_key")
	switch {
	case s.AccessKeyID == "" && !s.SecretAccessKey.Empty():
		v.report(id, "is missing: it belongs to %s", secret)
	case s.AccessKeyID != "" && s.SecretAccessKey.Empty():
		v.report(secret, "is missing: it belongs to %s", id)
	}
	s.AssumeRole.check(v, p.Child("assume_role"), tenants)
}
