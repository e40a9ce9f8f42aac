package servicetest

import (
	"io"
	"net/http"
	"testing"
)

// Get returns the status and the body of the answer to a GET request, which options may change before it is sent.
func Get(tb testing.TB, address string, options ...func(*http.Request)) (status int, body string) {
	tb.Helper()
	request, err := http.NewRequest(http.MethodGet, address, nil)
	if err != nil {
		tb.Fatal(err)
	}
	for _, option := range options {
		option(request)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		tb.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		tb.Fatal(err)
	}
	return response.StatusCode, string(text)
}
