package web

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

const secret = "0123456789abcdef"

// TestPost checks that posts are signed and that redirects are not followed.
func TestPost(t *testing.T) {
	const body = `[{"event":"a"}]`
	statuses := []int{http.StatusServiceUnavailable, http.StatusFound, http.StatusAccepted}
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got, err := io.ReadAll(r.Body)
		if err != nil || string(got) != body {
			t.Errorf("got %q, %v", got, err)
		}
		if want := Sign([]byte(secret), r.Header.Get(TimestampHeader), got); r.Header.Get(SignatureHeader) != want {
			t.Errorf("signature %q, want %q", r.Header.Get(SignatureHeader), want)
		}
		w.Header().Set("Location", "http://127.0.0.1:1/")
		w.WriteHeader(statuses[0])
	}))
	t.Cleanup(receiver.Close)
	webhook := NewWebhook(receiver.URL, secret, nil, time.Minute)
	for ; len(statuses) > 0; statuses = statuses[1:] {
		if err := webhook.Post(t.Context(), []byte(body)); (err == nil) != (statuses[0] == http.StatusAccepted) {
			t.Errorf("%d: %v", statuses[0], err)
		}
	}
}

// TestPostHidesURL checks that errors do not contain the URL, whose query may contain a key.
func TestPostHidesURL(t *testing.T) {
	err := NewWebhook("http://127.0.0.1:1/?key=hidden", secret, nil, time.Minute).Post(t.Context(), []byte("[]"))
	if err == nil || strings.Contains(err.Error(), "hidden") {
		t.Errorf("error for an unreachable receiver: %v", err)
	}
}
