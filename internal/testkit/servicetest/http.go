package servicetest

import (
	"io"
	"net/http"
	"testing"

	"github.com/babelftp/babelftp/internal/testkit/must"
)

// Get sends a GET request and returns the status and the body of the response. Options may change the request
// before it is sent.
func Get(tb testing.TB, address string, options ...func(*http.Request)) (status int, body string) {
	tb.Helper()
	request, err := http.NewRequest(http.MethodGet, address, nil)
	must.OK(tb, err)
	for _, option := range options {
		option(request)
	}
	response, err := http.DefaultClient.Do(request)
	must.OK(tb, err)
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	must.OK(tb, err)
	return response.StatusCode, string(text)
}
