package server

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/s3"
)

// changedAnswers is a transport that changes the answers of S3.
type changedAnswers struct {
	s3.HTTPClient
	change func(*http.Response)
}

func (c changedAnswers) Do(request *http.Request) (*http.Response, error) {
	response, err := c.HTTPClient.Do(request)
	if err == nil {
		c.change(response)
	}
	return response, err
}

// A client learns that a file lies in an archive, and does not look for missing rights.
func TestArchivedFile(t *testing.T) {
	s, cfg := simulated(t)
	put(t, s, cfg, "alice/archived")
	reach := s.AWSConfig()
	reach.HTTPClient = changedAnswers{reach.HTTPClient, func(response *http.Response) {
		request := response.Request
		reads := request.Method == http.MethodGet && strings.HasSuffix(request.URL.Path, "/archived")
		if reads || request.Header.Get("X-Amz-Copy-Source") != "" { // as S3 does with objects in Glacier
			response.StatusCode = http.StatusForbidden
			response.Body = io.NopCloser(strings.NewReader("<Error><Code>InvalidObjectState</Code></Error>"))
			response.Header, response.ContentLength = http.Header{}, -1
		}
	}}
	c := session(t, start(t, cfg, Options{AWS: reach}), "alice")
	const text = "The file is archived and must be restored before it can be read."
	archived := func(path, reply string) {
		t.Helper()
		if reply != path+": "+text {
			t.Errorf("%q", reply)
		}
	}
	c.Command(200, "TYPE I")
	conn := c.Data()
	defer conn.Close()
	archived("archived", c.Command(550, "RETR archived"))
	c.Command(350, "RNFR archived")
	archived("archived -> moved", c.Command(550, "RNTO moved"))
	c.Command(213, "SIZE archived")
}
