package s3error_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"net/http"
	"strings"
	"syscall"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"github.com/babelftp/babelftp/internal/base/s3error"
)

// canned is an HTTP client that returns the same canned response to each request.
type canned struct {
	status       int
	server, body string
	location     string
	cut          bool // the connection breaks after the body
}

func (f canned) Do(r *http.Request) (*http.Response, error) {
	body := io.Reader(strings.NewReader(f.body))
	if f.cut {
		body = io.MultiReader(body, broken{})
	}
	h := http.Header{}
	for name, value := range map[string]string{"Server": f.server, "Location": f.location} {
		if value != "" {
			h.Set(name, value)
		}
	}
	return &http.Response{
		StatusCode: f.status, Header: h, Body: io.NopCloser(body), ContentLength: -1, Request: r,
		ProtoMajor: 1, ProtoMinor: 1,
	}, nil
}

type broken struct{}

func (broken) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

// requests contains a request for each kind of response.
var requests = map[string]func(context.Context, *s3.Client) error{
	"put": func(ctx context.Context, c *s3.Client) error {
		_, err := c.PutObject(ctx, &s3.PutObjectInput{
			Bucket: aws.String("b"), Key: aws.String("k"), Body: bytes.NewReader([]byte("content"))})
		return err
	},
	"get": func(ctx context.Context, c *s3.Client) error {
		_, err := c.GetObject(ctx, &s3.GetObjectInput{Bucket: aws.String("b"), Key: aws.String("k")})
		return err
	},
	"head": func(ctx context.Context, c *s3.Client) error {
		_, err := c.HeadObject(ctx, &s3.HeadObjectInput{Bucket: aws.String("b"), Key: aws.String("k")})
		return err
	},
	"list": func(ctx context.Context, c *s3.Client) error {
		_, err := c.ListObjectsV2(ctx, &s3.ListObjectsV2Input{Bucket: aws.String("b")})
		return err
	},
	"delete": func(ctx context.Context, c *s3.Client) error {
		_, err := c.DeleteObject(ctx, &s3.DeleteObjectInput{Bucket: aws.String("b"), Key: aws.String("k")})
		return err
	},
	"delete-many": func(ctx context.Context, c *s3.Client) error {
		_, err := c.DeleteObjects(ctx, &s3.DeleteObjectsInput{Bucket: aws.String("b"), Delete: &types.Delete{
			Objects: []types.ObjectIdentifier{{Key: aws.String("k")}}}})
		return err
	},
}

const (
	nginxPage = "<html>\r\n<head><title>%s</title></head>\r\n<body>\r\n<center><h1>%s</h1></center>\r\n" +
		"<hr><center>nginx/1.22.1</center>\r\n</body>\r\n</html>\r\n"
	xhtmlPage = `<?xml version="1.0"?><!-- proxy --><html xmlns="http://www.w3.org/1999/xhtml"><body/></html>`
	refusal   = `<?xml version="1.0" encoding="UTF-8"?>` + "\n" + `<Error><Code>%s</Code><Message>in words</Message></Error>`
)

// TestForeignResponses checks that the status determines the kind of a response whose body does not come from S3, and
// that the error contains the server and the advice.
//
// Reported for nginx in front of MinIO: minio/minio#7893 (413)
func TestForeignResponses(t *testing.T) {
	for _, tc := range []struct {
		name       string
		request    string
		response   canned
		kind       error // nil for success
		foreign    bool
		repeatable bool
		performed  bool // S3 may have performed the request
		text       string
	}{
		{"413", "put", canned{status: 413, server: "nginx/1.22.1", body: nginxPage}, syscall.EFBIG, true, false, false,
			"PutObject: HTTP 413 from nginx/1.22.1, not from S3: allow request bodies of part_size"},
		{"413-json", "put", canned{status: 413, server: "kong", body: `{"message":"too large"}`}, syscall.EFBIG, true,
			false, false, "HTTP 413 from kong"},
		{"413-text", "put", canned{status: 413, body: "Request Entity Too Large\n"}, syscall.EFBIG, true, false, false,
			"HTTP 413 without an S3 response"},
		{"413-of-s3", "put", canned{status: 413, body: strings.ReplaceAll(refusal, "%s", "EntityTooLarge")},
			syscall.EFBIG, false, false, false, "EntityTooLarge: in words"},
		{"403", "put", canned{status: 403, server: "cloudflare", body: nginxPage}, fs.ErrPermission, true, false, false,
			"HTTP 403 from cloudflare, not from S3: allow the request in the rules of that proxy or firewall"},
		{"403-to-list", "list", canned{status: 403, server: "waf", body: "<!DOCTYPE html><p>no"}, fs.ErrPermission, true,
			false, false, "HTTP 403 from waf"},
		{"403-soap", "get", canned{status: 403, body: `<soap:Envelope xmlns:soap="x"></soap:Envelope>`},
			fs.ErrPermission, true, false, false, "HTTP 403"},
		{"403-empty", "get", canned{status: 403}, fs.ErrPermission, false, false, false, "Forbidden"},
		{"403-to-head", "head", canned{status: 403, body: ""}, fs.ErrPermission, false, false, false, "Forbidden"},
		{"401", "get", canned{status: 401, body: "login"}, fs.ErrPermission, true, false, false, "without a login"},
		{"404-of-a-proxy", "get", canned{status: 404, server: "Apache", body: nginxPage}, syscall.EIO, true,
			false, false, "HTTP 404 from Apache, not from S3: correct s3.endpoint"},
		{"404-of-a-delete", "delete", canned{status: 404, body: xhtmlPage}, syscall.EIO, true, false, false, "404"},
		{"404-of-s3", "get", canned{status: 404, body: strings.ReplaceAll(refusal, "%s", "NoSuchKey")}, fs.ErrNotExist,
			false, false, false, "does not exist"},
		{"404-with-prefix", "get", canned{status: 404,
			body: `<s:Error xmlns:s="x"><s:Code>NoSuchKey</s:Code></s:Error>`}, fs.ErrNotExist, false, false, false, ""},
		{"405", "put", canned{status: 405, server: "nginx", body: nginxPage}, errors.ErrUnsupported, true, false, false,
			"HEAD, GET, PUT, POST and DELETE"},
		{"412-of-a-proxy", "put", canned{status: 412, body: nginxPage}, syscall.EIO, true, false, false,
			"412"},
		{"414", "get", canned{status: 414, body: nginxPage}, syscall.ENAMETOOLONG, true, false, false, "4 KiB"},
		{"416", "get", canned{status: 416, body: nginxPage}, syscall.EIO, true, false, false, "416"},
		{"417", "put", canned{status: 417, server: "lighttpd", body: nginxPage}, syscall.EIO, true, false, false,
			"Expect"},
		{"431", "put", canned{status: 431, server: "envoy", body: "too large"}, syscall.EIO, true, false, false,
			"request headers of 16 KiB"},
		{"400-headers-of-nginx", "put", canned{status: 400, server: "nginx", body: "<html>400 Request Header Or " +
			"Cookie Too Large</html>"}, syscall.EIO, true, false, false, "request headers of 16 KiB"},
		{"400-plain-to-tls", "list", canned{status: 400, server: "nginx", body: "<html>400 The plain HTTP request " +
			"was sent to HTTPS port</html>"}, syscall.EIO, true, false, false, "use https:// in s3.endpoint"},
		{"400-plain-to-go", "list", canned{status: 400, body: "Client sent an HTTP request to an HTTPS server.\n"},
			syscall.EIO, true, false, false, "use https:// in s3.endpoint"},
		{"301", "list", canned{status: 301, server: "nginx", location: "https://s3.example/b", body: nginxPage},
			syscall.EIO, true, false, false, "into s3.endpoint: https://s3.example/b"},
		{"408", "put", canned{status: 408, body: nginxPage}, syscall.EAGAIN, true, true, true, "time-outs"},
		{"425", "put", canned{status: 425, body: nginxPage}, syscall.EAGAIN, true, true, true, "425"},
		{"429", "put", canned{status: 429, server: "nginx", body: nginxPage}, syscall.EAGAIN, true, true, false,
			"request limit"},
		{"500", "put", canned{status: 500, body: nginxPage}, syscall.EAGAIN, true, true, true, "500"},
		{"501", "put", canned{status: 501, body: nginxPage}, errors.ErrUnsupported, true, false, false, "501"},
		{"502", "put", canned{status: 502, server: "nginx", body: nginxPage}, syscall.EAGAIN, true, true, true,
			"check whether that server can reach S3"},
		{"503", "list", canned{status: 503, server: "HAProxy", body: "<html><body><h1>503</h1>"}, syscall.EAGAIN, true,
			true, true, "HTTP 503 from HAProxy"},
		{"504", "put", canned{status: 504, body: nginxPage}, syscall.EAGAIN, true, true, true, "proxy_read_timeout"},
		{"507", "put", canned{status: 507, body: nginxPage}, syscall.ENOSPC, true, false, false, "507"},
		{"520", "put", canned{status: 520, server: "cloudflare", body: nginxPage}, syscall.EAGAIN, true, true, true,
			"HTTP 520 from cloudflare"},
		{"portal-to-list", "list", canned{status: 200, body: xhtmlPage}, syscall.EAGAIN, true, true, true, "web page"},
		{"portal-to-delete-many", "delete-many", canned{status: 200, body: xhtmlPage}, syscall.EAGAIN, true, true, true,
			"web page"},
		{"portal-to-delete", "delete", canned{status: 200, body: nginxPage}, syscall.EAGAIN, true, true, true, ""},
		{"portal-to-put", "put", canned{status: 200, body: "<!doctype html>\n<p>login"}, syscall.EAGAIN, true, true, true,
			""},
		{"text-to-list", "list", canned{status: 200, body: "ok"}, syscall.EAGAIN, true, true, true, ""},
		{"text-to-put", "put", canned{status: 200, body: "ok"}, nil, false, false, false, ""},
		{"cut-refusal", "put", canned{status: 403, body: `<?xml version="1.0"?><Err`, cut: true}, syscall.EAGAIN, false,
			true, true, ""},
		{"cut-declaration", "put", canned{status: 403, body: `<?xml ver`, cut: true}, syscall.EAGAIN, false, true, true,
			""},
		{"cut-page", "put", canned{status: 413, body: "<html><hea", cut: true}, syscall.EFBIG, true, false, false, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			client := s3.New(s3.Options{
				BaseEndpoint: aws.String("http://s3.invalid"), Region: "us-east-1", UsePathStyle: true,
				Credentials: credentials.NewStaticCredentialsProvider("key", "secret", ""),
				HTTPClient:  tc.response, Retryer: aws.NopRetryer{},
			}, s3.WithAPIOptions(s3error.DetectForeign, s3error.DetectForeign))
			err := requests[tc.request](t.Context(), client)
			if tc.kind == nil {
				if err != nil {
					t.Error(err)
				}
				return
			}
			kind := s3error.FromSDK(err)
			if !errors.Is(kind, tc.kind) || !strings.Contains(kind.Error(), tc.text) {
				t.Errorf("%v is not %v, or does not contain %q", kind, tc.kind, tc.text)
			}
			_, foreign := errors.AsType[*s3error.ForeignError](err)
			if repeatable, performed := s3error.Repeatable(err), !s3error.NotPerformed(err); foreign != tc.foreign ||
				repeatable != tc.repeatable || performed != tc.performed {
				t.Errorf("foreign: %t, repeatable: %t, performed: %t", foreign, repeatable, performed)
			}
			if s3error.Status(err) != tc.response.status {
				t.Errorf("status %d, want %d", s3error.Status(err), tc.response.status)
			}
		})
	}
}
