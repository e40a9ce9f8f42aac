package s3client

import (
	"bufio"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"testing"
	"time"

	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"

	"github.com/babelftp/babelftp/internal/config"
	"github.com/babelftp/babelftp/internal/testkit/ftptest"
	"github.com/babelftp/babelftp/internal/testkit/must"
	"github.com/babelftp/babelftp/internal/testkit/s3test"
	"github.com/babelftp/babelftp/internal/testkit/servicetest"
)

// TestExplainCodes makes S3 refuse a bucket for many reasons. The error has the code and the message of S3, and advice
// only if the cause is certain. Other errors begin with the HTTP status.
func TestExplainCodes(t *testing.T) {
	const answered = "%s returned %d for ListObjectsV2 (%s: in words)"
	for _, tc := range []struct {
		code    string
		status  int
		problem string // "" for answered
		advice  string // "" for no advice
	}{
		// Reported for Alibaba OSS and Tencent COS: peak/s5cmd#518, gobackup/gobackup#233
		{"SecondLevelDomainForbidden", 403, "", "set s3.path_style: false"},
		{"PathStyleDomainForbidden", 403, "", "set s3.path_style: false"},
		// Reported for nginx in front of MinIO: minio/minio#1315, usnistgov/dioptra#347
		{"SignatureDoesNotMatch", 403, "", "compare s3.secret_access_key; if a proxy is in front of that server, let it " +
			"pass on the header Host as it is (proxy_set_header Host $http_host for nginx)"},
		{"InvalidAccessKeyId", 403, "%s refuses the credentials", "correct s3.access_key_id and s3.secret_access_key"},
		{"ExpiredToken", 400, "%s refuses the credentials", "correct s3.access_key_id and s3.secret_access_key"},
		{"RequestTimeTooSkewed", 403, "", "set the clock of this machine or of the server"},
		{"AuthorizationHeaderMalformed", 400, "", "compare s3.region and s3.endpoint"},
		{"PermanentRedirect", 301, "", "compare s3.region and s3.endpoint"},
		{"AccountProblem", 403, "", "contact the provider of the account"},
		{"UserDisable", 403, "", "contact the provider of the account"},
		{"NoSuchBucket", 404, "does not exist at %s", "create it, or correct tenants.acme.bucket"},
		{"InvalidBucketName", 400, "", "correct tenants.acme.bucket"},
		{"XMinioServerNotInitialized", 400, "", "wait until that server has started"},
		{"AccessDenied", 403, "%s does not let the credentials use it: ListObjectsV2", "allow s3:ListBucket on "},
		{"InvalidRequest", 400, "", ""},
		{"SlowDown", 503, "", ""},
		{"InternalError", 500, "", ""},
		{"OfNobody", 403, "", ""},
		{"OfNobodyElse", 418, "", ""},
	} {
		t.Run(tc.code, func(t *testing.T) {
			at := answers(t, tc.status, "application/xml",
				"<Error><Code>"+tc.code+"</Code><Message>in\nwords</Message></Error>")
			cfg := servicetest.NewConfig(t, s3test.Start(t, "sim-aws"))
			cfg.S3.Endpoint = at
			t.Setenv("AWS_MAX_ATTEMPTS", "1")
			want := fmt.Sprintf(answered, at, tc.status, tc.code)
			if tc.problem != "" {
				want = fmt.Sprintf(strings.ReplaceAll(tc.problem, "%s", at)+" (%s: in words)", tc.code)
			}
			want = fmt.Sprintf("tenant acme: bucket %q: %s", cfg.Tenants["acme"].Bucket, want)
			if tc.advice != "" {
				want += ": " + tc.advice
			}
			_, err := verify(t.Context(), cfg, nil)
			if err == nil || !strings.HasPrefix(err.Error(), want) || tc.advice == "" && err.Error() != want {
				t.Errorf("got  %v\nwant %s", err, want)
			}
		})
	}
}

// If a signature has the wrong region, the message of S3 names the correct one. AWS and versitygw quote it differently.
func TestExplainRegionInMessage(t *testing.T) {
	for name, message := range map[string]string{
		"aws": "the region 'us-east-1' is wrong; expecting 'eu-west-3'", "versitygw": `the region "us-east-1" is wrong; ` +
			`expecting "eu-west-3"`} {
		t.Run(name, func(t *testing.T) {
			cfg := servicetest.NewConfig(t, s3test.Start(t, "sim-aws"))
			cfg.S3.Endpoint = answers(t, http.StatusBadRequest, "application/xml", "<Error><Code>AuthorizationHeaderMalformed"+
				"</Code><Message>The authorization header is malformed; "+message+"</Message></Error>")
			_, err := verify(t.Context(), cfg, nil)
			if err == nil || !strings.HasSuffix(err.Error(), message+"): set s3.region: eu-west-3") {
				t.Error(err)
			}
		})
	}
}

// A proxy that changes the Host header breaks every signature, although the secret is correct.
func TestExplainSignatureBehindProxy(t *testing.T) {
	s := s3test.Start(t, "minio")
	to, err := url.Parse(s.Endpoint)
	must.OK(t, err)
	proxy := httptest.NewServer(&httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(to) // also changes the Host header
	}})
	defer proxy.Close()
	cfg := servicetest.NewConfig(t, s)
	cfg.S3.Endpoint = proxy.URL
	_, err = verify(t.Context(), cfg, nil)
	if err == nil || !strings.Contains(err.Error(), "(SignatureDoesNotMatch: ") ||
		!strings.Contains(err.Error(), "let it pass on the header Host as it is") {
		t.Error(err)
	}
}

// TestExplainNetwork makes the connection to S3 fail. The error says what failed, and what to change if there is only
// one possible cause.
func TestExplainNetwork(t *testing.T) {
	cert, key := must.Certificate(t, &x509.Certificate{IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}})
	pair, err := tls.X509KeyPair([]byte(cert), []byte(key))
	must.OK(t, err)
	otherCert, otherKey := must.Certificate(t, &x509.Certificate{DNSNames: []string{"other.example"}})
	otherPair, err := tls.X509KeyPair([]byte(otherCert), []byte(otherKey))
	must.OK(t, err)
	expiredCert, expiredKey := must.Certificate(t, &x509.Certificate{
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, NotBefore: time.Now().Add(-2 * time.Hour),
		NotAfter: time.Now().Add(-time.Hour),
	})
	expiredPair, err := tls.X509KeyPair([]byte(expiredCert), []byte(expiredKey))
	must.OK(t, err)
	overTLS := func(pair tls.Certificate) string {
		s := httptest.NewUnstartedServer(http.NotFoundHandler())
		s.Config.ErrorLog = nil
		s.TLS = &tls.Config{Certificates: []tls.Certificate{pair}}
		s.StartTLS()
		t.Cleanup(s.Close)
		return s.URL
	}
	rawTLS := func() string { // for servers that do not respond to plain HTTP with HTTP
		l, err := net.Listen("tcp", "127.0.0.1:0")
		must.OK(t, err)
		t.Cleanup(func() { _ = l.Close() })
		go func() {
			for {
				conn, err := l.Accept()
				if err != nil {
					return
				}
				_, _ = http.ReadRequest(bufio.NewReader(conn))
				_, _ = conn.Write([]byte{21, 3, 1, 0, 2, 2, 70}) // the alert protocol_version, RFC 8446 section 6
				_ = conn.Close()
			}
		}()
		return "http://" + l.Addr().String()
	}
	plain := answers(t, http.StatusOK, "text/plain", "ok")
	proxy := answers(t, http.StatusForbidden, "text/html", "no")
	gone := "http://" + ftptest.FreeAddresses(t, 1)[0]
	for name, tc := range map[string]struct {
		endpoint string
		trusts   string // trusted certificates
		proxy    string
		want     []string
	}{
		"unknown-authority": {overTLS(pair), "", "", []string{"cannot reach S3 at https://127.0.0.1:",
			"certificate signed by unknown authority", ": set AWS_CA_BUNDLE to a file with"}},
		"wrong-host": {overTLS(otherPair), otherCert, "", []string{"cannot reach S3",
			"use a host name of the certificate in s3.endpoint"}},
		"expired": {overTLS(expiredPair), expiredCert, "", []string{"expired", "renew the certificate of that server"}},
		"tls-to-a-plain-port": {strings.Replace(plain, "http:", "https:", 1), "", "", []string{
			"use http:// in s3.endpoint: the port does not speak TLS"}},
		"plain-to-a-tls-port": {strings.Replace(overTLS(pair), "https:", "http:", 1), "", "", []string{
			"HTTP 400 without an S3 response", "use https:// in s3.endpoint: its port speaks TLS"}},
		"plain-to-a-raw-tls-port": {rawTLS(), "", "", []string{"cannot reach S3 at http://127.0.0.1:",
			"use https:// in s3.endpoint: the port speaks TLS"}},
		"unknown-host": {"http://s3.invalid", "", "", []string{"lookup s3.invalid",
			"correct the host name in s3.endpoint, or the DNS of this machine"}},
		"refused": {gone, "", "", []string{"connection refused: start that server, or correct s3.endpoint"}},
		"proxy-refused": {"https://s3.invalid", "", gone, []string{"proxyconnect",
			"correct HTTPS_PROXY, or add the host of that server to NO_PROXY"}},
		"proxy-denies": {"https://s3.invalid", "", proxy, []string{
			"the proxy " + proxy + " returned 403 Forbidden for CONNECT: correct HTTPS_PROXY"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("AWS_MAX_ATTEMPTS", "1")
			cfg := servicetest.NewConfig(t, s3test.Start(t, "sim-aws"))
			cfg.S3.Endpoint = tc.endpoint
			if tc.trusts != "" {
				file := t.TempDir() + "/ca.crt"
				must.WriteFile(t, file, tc.trusts)
				t.Setenv("AWS_CA_BUNDLE", file)
			}
			err := verifyWithProxy(t, cfg, tc.proxy)
			if err == nil {
				t.Fatal("missing error")
			}
			text := err.Error()
			for _, part := range tc.want {
				_, rest, found := strings.Cut(text, part)
				if !found {
					t.Fatalf("%v\nlacks %q", err, part)
				}
				text = rest
			}
		})
	}
}

// verifyWithProxy runs verify, with a proxy unless its URL is empty. net/http reads the proxy variables only once, so
// the transport needs the proxy.
func verifyWithProxy(t *testing.T, cfg *config.Config, proxy string) error {
	t.Helper()
	reach, err := LoadEnvironment(t.Context(), slog.New(slog.DiscardHandler))
	must.OK(t, err)
	if proxy != "" {
		to, err := url.Parse(proxy)
		must.OK(t, err)
		client, ok := reach.HTTPClient.(*awshttp.BuildableClient)
		if !ok {
			t.Fatalf("unexpected client %T", reach.HTTPClient)
		}
		reach.HTTPClient = client.WithTransportOptions(func(t *http.Transport) { t.Proxy = http.ProxyURL(to) })
	}
	_, err = verify(t.Context(), cfg, reach)
	return err
}
