package s3client

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/babelftp/babelftp/internal/config"
	"github.com/babelftp/babelftp/internal/testkit/must"
	"github.com/babelftp/babelftp/internal/testkit/s3test"
	"github.com/babelftp/babelftp/internal/testkit/servicetest"
)

// withoutCredentials clears the environment, so that the SDK finds no credentials.
func withoutCredentials(t *testing.T) {
	t.Helper()
	for _, variable := range os.Environ() {
		if name, _, _ := strings.Cut(variable, "="); strings.HasPrefix(name, "AWS_") {
			t.Setenv(name, "")
		}
	}
	nowhere := t.TempDir() + "/none"
	for name, value := range map[string]string{
		"AWS_CONFIG_FILE": nowhere, "AWS_SHARED_CREDENTIALS_FILE": nowhere, "AWS_EC2_METADATA_DISABLED": "true",
		"AWS_MAX_ATTEMPTS": "1", "HOME": t.TempDir(),
	} {
		t.Setenv(name, value)
	}
}

// answers starts a server that sends the same response to all requests, and returns its URL.
func answers(t *testing.T, status int, contentType, body string) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", contentType)
		w.WriteHeader(status)
		_, _ = w.Write([]byte(body))
	}))
	t.Cleanup(s.Close)
	return s.URL
}

const stsError = `<ErrorResponse><Error><Type>Sender</Type><Code>%s</Code><Message>%s</Message></Error>` +
	`<RequestId>r</RequestId></ErrorResponse>`

// TestMissingCredentials makes each provider of the SDK fail. The error names the provider and the reason. It contains
// "not found" only if no provider is configured.
func TestMissingCredentials(t *testing.T) {
	sts := func(t *testing.T, status int, code, message string) {
		t.Setenv("AWS_ENDPOINT_URL_STS", answers(t, status, "text/xml", fmt.Sprintf(stsError, code, message)))
	}
	irsa := func(t *testing.T) {
		file := t.TempDir() + "/token"
		must.WriteFile(t, file, "token")
		t.Setenv("AWS_WEB_IDENTITY_TOKEN_FILE", file)
		t.Setenv("AWS_ROLE_ARN", "arn:aws:iam::123456789012:role/ftp")
		t.Setenv("AWS_REGION", "us-east-1")
	}
	pod := func(t *testing.T, status int, body string) {
		file := t.TempDir() + "/token"
		must.WriteFile(t, file, "token")
		t.Setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", answers(t, status, "application/json", body))
		t.Setenv("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", file)
	}
	profile := func(t *testing.T, text string) {
		file := t.TempDir() + "/config"
		must.WriteFile(t, file, text)
		t.Setenv("AWS_CONFIG_FILE", file)
		t.Setenv("AWS_PROFILE", "p")
	}
	for name, tc := range map[string]struct {
		prepare func(t *testing.T)
		want    []string // parts of the error, in order
	}{
		"nothing": {func(*testing.T) {}, []string{
			"no credentials for S3 were found (the instance role (IMDS): ", ": set s3.access_key_id and its secret"}},
		"imds-unreachable": {
			func(t *testing.T) {
				t.Setenv("AWS_EC2_METADATA_DISABLED", "false")
				gone := httptest.NewServer(http.NotFoundHandler())
				gone.Close()
				t.Setenv("AWS_EC2_METADATA_SERVICE_ENDPOINT", gone.URL)
			}, []string{"no credentials for S3 were found (the instance role (IMDS): ", "connection refused", "set s3."}},
		"imds-without-role": {
			func(t *testing.T) {
				t.Setenv("AWS_EC2_METADATA_DISABLED", "false")
				t.Setenv("AWS_EC2_METADATA_SERVICE_ENDPOINT", answers(t, http.StatusNotFound, "text/plain", "none"))
			}, []string{"no credentials for S3 were found (the instance role (IMDS): ", "set s3."}},
		"imds-fails": {
			func(t *testing.T) {
				t.Setenv("AWS_EC2_METADATA_DISABLED", "false")
				t.Setenv("AWS_EC2_METADATA_SERVICE_ENDPOINT", answers(t, http.StatusForbidden, "text/plain", "no"))
			}, []string{"no credentials for S3 from the instance role (IMDS): ", "403", "check the role of the instance"}},
		"irsa-denied": {
			func(t *testing.T) {
				irsa(t)
				sts(t, http.StatusForbidden, "AccessDenied", "Not authorized to perform sts:AssumeRoleWithWebIdentity")
			}, []string{"no credentials for S3 from IRSA (AssumeRoleWithWebIdentity): ",
				"AccessDenied: Not authorized to perform sts:AssumeRoleWithWebIdentity (HTTP 403)",
				"in the trust policy of the role arn:aws:iam::123456789012:role/ftp"}},
		"irsa-expired": {
			func(t *testing.T) {
				irsa(t)
				sts(t, http.StatusBadRequest, "ExpiredTokenException", "Token expired")
			}, []string{"IRSA", "ExpiredTokenException: Token expired", "renewed"}},
		"irsa-unknown-issuer": {
			func(t *testing.T) {
				irsa(t)
				sts(t, http.StatusBadRequest, "InvalidIdentityToken", "No OpenIDConnect provider found")
			}, []string{"IRSA", "InvalidIdentityToken: No OpenIDConnect provider found", "identity provider in IAM"}},
		"irsa-without-file": {
			func(t *testing.T) {
				irsa(t)
				t.Setenv("AWS_WEB_IDENTITY_TOKEN_FILE", "/nowhere/token")
			}, []string{"IRSA", "/nowhere/token", "no such file", "mount the token"}},
		"irsa-sts-unreachable": {
			func(t *testing.T) {
				irsa(t)
				gone := httptest.NewServer(http.NotFoundHandler())
				gone.Close()
				t.Setenv("AWS_ENDPOINT_URL_STS", gone.URL)
			}, []string{"IRSA", "AssumeRoleWithWebIdentity: dial tcp", "connection refused", "AWS_ENDPOINT_URL_STS"}},
		"pod-identity-denied": {
			func(t *testing.T) {
				pod(t, http.StatusForbidden, `{"code":"AccessDeniedException","message":"Unauthorized Exception!"}`)
			}, []string{"no credentials for S3 from EKS Pod Identity or the container's role: ",
				"AccessDeniedException: Unauthorized Exception!", "check the association"}},
		"pod-identity-expired": {
			func(t *testing.T) {
				pod(t, http.StatusBadRequest, `{"code":"ExpiredTokenException","message":"token is expired"}`)
			}, []string{"EKS Pod Identity", "ExpiredTokenException: token is expired"}},
		"pod-identity-without-token": {
			func(t *testing.T) {
				pod(t, http.StatusOK, "{}")
				t.Setenv("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", "/nowhere/token")
			}, []string{"EKS Pod Identity", "/nowhere/token", "mount the token"}},
		"sso-not-logged-in": {
			func(t *testing.T) {
				profile(t, "[profile p]\nsso_session = s\nsso_account_id = 123456789012\nsso_role_name = r\n"+
					"[sso-session s]\nsso_start_url = https://sso.invalid/start\nsso_region = us-east-1\n")
			}, []string{"no credentials for S3 from SSO of the AWS profile: ", "run aws sso login"}},
		"process-fails": {
			func(t *testing.T) {
				profile(t, "[profile p]\ncredential_process = sh -c 'echo no-vault >&2; exit 3'\n")
			},
			[]string{"no credentials for S3 from credential_process of the AWS profile: ", "exit status 3"}},
		"role-of-the-profile-denied": {
			func(t *testing.T) {
				profile(t, "[profile p]\nrole_arn = arn:aws:iam::123456789012:role/r\nsource_profile = q\n"+
					"region = us-east-1\n[profile q]\naws_access_key_id = k\naws_secret_access_key = s\n")
				sts(t, http.StatusForbidden, "AccessDenied", "User q is not authorized")
			}, []string{"no credentials for S3 from the role of the AWS profile (AssumeRole): ",
				"AssumeRole: AccessDenied: User q is not authorized", "trust policy"}},
	} {
		for _, assumed := range []string{"", "arn:aws:iam::123456789012:role/of-tenant"} {
			t.Run(name+"/role="+assumed, func(t *testing.T) {
				withoutCredentials(t)
				tc.prepare(t)
				s := s3test.Start(t, "sim-aws")
				cfg := servicetest.NewConfig(t, s)
				cfg.S3 = config.S3{Endpoint: cfg.S3.Endpoint, Region: cfg.S3.Region, PathStyle: cfg.S3.PathStyle}
				cfg.S3.AssumeRole.RoleARN = assumed
				_, err := verify(t.Context(), cfg, nil)
				if err == nil {
					t.Fatal("the bucket is usable")
				}
				text := err.Error()
				for _, part := range append(tc.want, "") {
					_, rest, found := strings.Cut(text, part)
					if !found {
						t.Fatalf("%v\nlacks %q", err, part)
					}
					text = rest
				}
				if strings.Contains(err.Error(), "\n") || strings.Contains(err.Error(), assumed) != true {
					t.Errorf("error %q is not one line, or lacks the role", err)
				}
				t.Log(err)
			})
		}
	}
}
