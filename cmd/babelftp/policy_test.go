package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/babelftp/babelftp/internal/testkit/must"
	"github.com/babelftp/babelftp/internal/testkit/s3test"
	"github.com/babelftp/babelftp/internal/testkit/servicetest"
)

// TestPolicy checks the policies that the command prints for tenants and their folders.
func TestPolicy(t *testing.T) {
	file := filepath.Join(t.TempDir(), "babelftp.yaml")
	text := fmt.Sprintf(`s3: {region: eu-west-3, access_key_id: a, secret_access_key: b}
tenants:
  acme:
    bucket: acme-data
    prefix: inbox
    resume: keep
    objects: {tags: {owner: acme}, encryption: kms, kms_key_id: alias/ftp, acl: bucket-owner-full-control}
    folders:
      /archive: {bucket: archive, permissions: [list, read]}
      /other: {bucket: other, s3: {access_key_id: c, secret_access_key: d}}
    users:
      alice: {password_hash: %q, permissions: [list, read, write]}
  umbrella:
    bucket: umbrella-data
    s3: {assume_role: {role_arn: "arn:aws:iam::123456789012:role/ftp"}}
    users:
      bob: {password_hash: %[1]q, permissions: [list, read]}
  zebra:
    bucket: zebra-data
    s3: {endpoint: "http://127.0.0.1:1", path_style: true}
    overwrite: version
    objects: {acl: private}
    users:
      carol: {password_hash: %[1]q}
  yak:
    bucket: yak-data
    prefix: inbox
    s3: {endpoint: "http://127.0.0.1:1", path_style: true}
    users:
      dave: {password_hash: %[1]q, permissions: [list, read]}
  xerus:
    bucket: xerus-data
    prefix: inbox
    s3: {endpoint: "http://127.0.0.1:1", path_style: true, profile: ceph}
    users:
      erin: {password_hash: %[1]q, permissions: [list, read]}
`, servicetest.PasswordHash().Reveal())
	must.WriteFile(t, file, text)
	statement := func(actions, resource, condition string) string {
		return fmt.Sprintf(
			`{"Effect":"Allow","Action":[%s],"Resource":["%s"]%s}`, `"`+strings.ReplaceAll(actions, " ", `","`)+`"`,
			resource, condition)
	}
	for name, tc := range map[string]struct {
		args   []string
		want   []string
		stderr string
	}{
		"tenant": {[]string{"acme"}, []string{
			statement(
				"kms:Decrypt kms:GenerateDataKey", "arn:aws:kms:eu-west-3:*:key/*",
				`,"Condition":{"ForAnyValue:StringEquals":{"kms:ResourceAliases":["alias/ftp"]}}`),
			statement("s3:GetBucketObjectLockConfiguration", "arn:aws:s3:::acme-data", ""),
			statement(
				"s3:ListBucket", "arn:aws:s3:::acme-data", `,"Condition":{"StringLike":{"s3:prefix":["inbox/*"]}}`),
			statement(
				"s3:AbortMultipartUpload s3:GetObject s3:GetObjectTagging s3:ListMultipartUploadParts s3:PutObject "+
					"s3:PutObjectAcl s3:PutObjectTagging",
				"arn:aws:s3:::acme-data/inbox/*", ""),
			statement("s3:DeleteObject", "arn:aws:s3:::acme-data/inbox/.babelftp/*", ""),
			statement("s3:ListBucket", "arn:aws:s3:::archive", ""),
			statement("s3:GetObject", "arn:aws:s3:::archive/*", ""),
		}, "note: the folder /other uses other credentials: print their policy with --folder /other\n"},
		"folder": {[]string{"acme", "--folder", "/other"}, []string{
			statement(
				"kms:Decrypt kms:GenerateDataKey", "arn:aws:kms:eu-west-3:*:key/*",
				`,"Condition":{"ForAnyValue:StringEquals":{"kms:ResourceAliases":["alias/ftp"]}}`),
			statement("s3:GetBucketObjectLockConfiguration s3:ListBucket", "arn:aws:s3:::other", ""),
			statement(
				"s3:AbortMultipartUpload s3:GetObject s3:GetObjectTagging s3:ListMultipartUploadParts s3:PutObject "+
					"s3:PutObjectAcl s3:PutObjectTagging",
				"arn:aws:s3:::other/*", ""),
			statement("s3:DeleteObject", "arn:aws:s3:::other/.babelftp/*", ""),
		}, ""},
		"role-that-reads": {[]string{"umbrella"}, []string{
			statement("s3:ListBucket", "arn:aws:s3:::umbrella-data", ""),
			statement("s3:GetObject", "arn:aws:s3:::umbrella-data/*", ""),
		},
			"note: this is the policy of the role arn:aws:iam::123456789012:role/ftp; credentials that assume it " +
				"need sts:AssumeRole, and sts:TagSession for session_tags\n"},
		"unknown-server": {[]string{"zebra"}, []string{
			statement(
				"s3:GetBucketObjectLockConfiguration s3:GetBucketVersioning s3:ListBucket",
				"arn:aws:s3:::zebra-data", ""),
			statement(
				"s3:AbortMultipartUpload s3:DeleteObject s3:GetObject "+
					"s3:ListMultipartUploadParts s3:PutObject",
				"arn:aws:s3:::zebra-data/*", ""),
		}, ""},
		// Reported for Ceph: ceph/ceph#68577
		"ceph-with-a-prefix": {[]string{"xerus"}, []string{
			statement("s3:ListBucket", "arn:aws:s3:::xerus-data", `,"Condition":{"Null":{"s3:max-keys":["true"]}}`),
			statement(
				"s3:ListBucket", "arn:aws:s3:::xerus-data", `,"Condition":{"StringLike":{"s3:prefix":["inbox/*"]}}`),
			statement("s3:GetObject", "arn:aws:s3:::xerus-data/inbox/*", ""),
		}, ""},
		"unknown-server-with-a-prefix": {[]string{"yak"}, []string{
			statement(
				"s3:GetBucketVersioning", "arn:aws:s3:::yak-data", ""),
			statement(
				"s3:ListBucket", "arn:aws:s3:::yak-data", `,"Condition":{"StringLike":{"s3:prefix":["inbox/*"]}}`),
			statement("s3:GetObject", "arn:aws:s3:::yak-data/inbox/*", ""),
		}, "note: the S3 server of bucket \"yak-data\" is not known yet; if it is Ceph, set s3.profile: ceph and print " +
			"the policy again, because Ceph needs one more statement for a prefix\n"},
	} {
		t.Run(name, func(t *testing.T) {
			code, stdout, stderr := output(t, "", append([]string{"policy", "--config", file}, tc.args...)...)
			var got bytes.Buffer
			if err := json.Compact(&got, []byte(stdout)); code != 0 || err != nil || stderr != tc.stderr {
				t.Fatalf("exit code %d: %v\n%s", code, err, stderr)
			}
			want := `{"Version":"2012-10-17","Statement":[` + strings.Join(tc.want, ",") + "]}"
			if got := strings.TrimSpace(got.String()); got != want {
				t.Errorf("got\n%s\nwant\n%s", got, want)
			}
		})
	}
	for _, tc := range []struct {
		args   []string
		code   int
		stderr string
	}{
		{[]string{"acne"}, 1, "babelftp: unknown tenant \"acne\": want one of acme, umbrella, xerus, yak, zebra\n"},
		{[]string{"acme", "--folder", "/none"}, 1, "babelftp: tenant acme: unknown folder \"/none\"\n"},
		{nil, 2, "babelftp: expected one TENANT, --bucket or --state (see babelftp policy --help)\n"},
		{[]string{"acme", "--state"}, 2,
			"babelftp: --state cannot be combined with TENANT, --bucket or --folder (see babelftp policy --help)\n"},
		{[]string{"--state"}, 1, "babelftp: state is missing in the configuration\n"},
	} {
		if code, stdout, stderr := output(
			t, "", append(
				[]string{"policy", "--config", file},
				tc.args...)...); code != tc.code || stdout != "" || stderr != tc.stderr {
			t.Errorf("%v: exit code %d: %s%s", tc.args, code, stdout, stderr)
		}
	}
}

// TestPolicyOfBucket compares the policies printed for flags with those printed for an equivalent
// configuration.
func TestPolicyOfBucket(t *testing.T) {
	t.Setenv("AWS_REGION", "eu-north-1")      // must be ignored
	t.Setenv("BABELFTP_LISTEN", "no address") // must be ignored
	for _, tt := range []struct {
		name  string
		flags []string
		s3    string // S3 settings of the tenant
		rest  string
	}{
		{"bucket", []string{"--bucket", "acme-data"}, "{region: us-east-1}", "bucket: acme-data"},
		{"prefix", []string{"--bucket", "acme-data", "--prefix", "inbox/"}, "{region: us-east-1}",
			"bucket: acme-data, prefix: inbox/"},
		{"prefix-without-slash", []string{"--bucket", "acme-data", "--prefix", "inbox"}, "{region: us-east-1}",
			"bucket: acme-data, prefix: inbox/"},
		{"region", []string{"--bucket", "acme-data", "--region", "cn-north-1"}, "{region: cn-north-1}",
			"bucket: acme-data"},
		{"ceph", []string{"--bucket", "acme-data", "--prefix", "inbox/", "--profile", "ceph"},
			"{endpoint: http://127.0.0.1:1, profile: ceph}", "bucket: acme-data, prefix: inbox/"},
		{"directory-bucket", []string{"--bucket", "acme--euw1-az1--x-s3", "--region", "eu-west-1"},
			"{region: eu-west-1}", "bucket: acme--euw1-az1--x-s3"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			code, got, stderr := output(t, "", append([]string{"policy"}, tt.flags...)...)
			if code != 0 || stderr != "" {
				t.Fatalf("exit code %d: %s", code, stderr)
			}
			t.Setenv("BABELFTP_LISTEN", ":2121")
			file := filepath.Join(t.TempDir(), "babelftp.yaml")
			must.WriteFile(t, file, fmt.Sprintf("tenants: {acme: {s3: %s, %s, users: {alice: {disabled: true}}}}\n", tt.s3,
				tt.rest))
			code, want, stderr := output(t, "", "policy", "acme", "--config", file)
			if code != 0 || got != want {
				t.Errorf("got\n%s\nwant\n%s%s", got, want, stderr)
			}
		})
	}
	for _, tt := range []struct {
		args, want string
		code       int
	}{
		{"acme --bucket b", "babelftp: --bucket cannot be combined with TENANT, --config or --folder", 2},
		{"--bucket b --folder /x", "babelftp: --bucket cannot be combined with TENANT, --config or --folder", 2},
		{"acme --prefix p", "babelftp: --prefix requires --bucket", 2},
		{"acme --profile ceph", "babelftp: --profile requires --bucket", 2},
		{"--bucket Acme", `babelftp: --bucket: "Acme" is not a valid bucket name: write lower-case letters, digits, - and . only`, 1},
		{"--bucket acme --prefix /in", `babelftp: --prefix: "/in/" is not a prefix of keys: remove the slash at the beginning`, 1},
		{"--bucket acme --profile cefh", `babelftp: --profile: unknown value "cefh": write auto, aws,`, 1},
	} {
		code, stdout, stderr := output(t, "", append([]string{"policy"}, strings.Fields(tt.args)...)...)
		if code != tt.code || stdout != "" || !strings.Contains(stderr, tt.want) {
			t.Errorf("%s: exit code %d: %s%s", tt.args, code, stdout, stderr)
		}
	}
}

// writeSDKConfig is like writeConfig, but puts the credentials in the environment, where the AWS SDK finds
// them.
func writeSDKConfig(t *testing.T, s *s3test.Server, bucket string) string {
	t.Helper()
	file := writeConfig(t, s, bucket)
	text := must.ReadFile(t, file)
	text = regexp.MustCompile(`(?m)^  (access_key_id|secret_access_key_file): .*\n`).ReplaceAllString(text, "")
	text = strings.ReplaceAll(text, "    default_language: fr\n", "    prefix: inbox\n")
	must.WriteFile(t, file, text)
	useCredentials(t, s)
	return file
}

func useCredentials(t *testing.T, s *s3test.Server) {
	t.Helper()
	t.Setenv("AWS_ACCESS_KEY_ID", s.AccessKeyID)
	t.Setenv("AWS_SECRET_ACCESS_KEY", s.SecretAccessKey)
	t.Setenv("AWS_SESSION_TOKEN", s.SessionToken)
}

// On a server that enforces policies, check --probe succeeds with the printed policy, and names the missing
// actions with another policy.
func TestPolicyIsEnforced(t *testing.T) {
	s := s3test.Start(t, "minio")
	bucket := s.Bucket(t)
	file := writeSDKConfig(t, s, bucket)
	code, policy, stderr := output(t, "", "policy", "acme", "--config", file)
	if code != 0 {
		t.Fatal(stderr)
	}
	use := func(policy string) {
		useCredentials(t, s.Restricted(t, json.RawMessage(policy)))
	}
	use(policy)
	if code, stdout, stderr := output(t, "", "check", "--probe", "--config", file); code != 0 || stderr != "" {
		t.Errorf("exit code %d: %s%s", code, stdout, stderr)
	}
	withoutDelete := strings.Replace(policy, `"s3:DeleteObject",`, "", 1)
	if withoutDelete == policy {
		t.Fatal(policy)
	}
	use(strings.Replace(withoutDelete, `"s3:AbortMultipartUpload",`, "", 1))
	want := fmt.Sprintf(
		"babelftp: tenant acme: bucket %q: the IAM policy lacks s3:DeleteObject on arn:aws:s3:::%[1]s/inbox/*, "+
			"s3:AbortMultipartUpload on "+
			"arn:aws:s3:::%[1]s/inbox/*: add it; babelftp policy acme prints all that it needs\n", bucket)
	if code, stdout, stderr := output(t, "", "check", "--probe", "--config", file); code != 1 || stdout != "" ||
		stderr != want {
		t.Errorf("exit code %d: %s%s\nwant %s", code, stdout, stderr, want)
	}
	code, stdout, _ := output(t, "", "check", "--probe", "--json", "--config", file)
	wantJSON := fmt.Sprintf(
		`{"tenant":"acme","bucket":%q,"ok":false,"missing":[{"action":"s3:DeleteObject","resource":"arn:aws:s3:::%[1]s/inbox/*"},`+
			`{"action":"s3:AbortMultipartUpload","resource":"arn:aws:s3:::%[1]s/inbox/*"}]}`+"\n", bucket)
	if code != 1 || stdout != wantJSON {
		t.Errorf("exit code %d: %s\nwant %s", code, stdout, wantJSON)
	}
}
