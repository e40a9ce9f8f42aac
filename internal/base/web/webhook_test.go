package web

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"
)

const secret = "0123456789abcdef"

// newLines posts to a handler, and leaves a receiver that fails alone for a millisecond.
func newLines(ctx context.Context, t *testing.T, handler http.HandlerFunc) *Lines {
	t.Helper()
	receiver := httptest.NewServer(handler)
	t.Cleanup(receiver.Close)
	log := slog.New(slog.NewTextHandler(t.Output(), nil))
	l := NewLines(ctx, NewWebhook(receiver.URL, secret, nil, time.Minute), log)
	l.retry = time.Millisecond
	return l
}

// The receiver gets all lines of a Write as one array, when it answers 2xx at last.
func TestLinesAreRepeated(t *testing.T) {
	answers := []int{http.StatusServiceUnavailable, http.StatusFound, http.StatusAccepted}
	var got []string
	l := newLines(t.Context(), t, func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		if want := Sign([]byte(secret), r.Header.Get(TimestampHeader), body); r.Header.Get(SignatureHeader) != want {
			t.Errorf("signature %q, want %q", r.Header.Get(SignatureHeader), want)
		}
		w.Header().Set("Location", "http://127.0.0.1:1/")
		w.WriteHeader(answers[0])
		answers = answers[1:]
		got = append(got, string(body))
	})
	lines := `{"event":"a\n,"}` + "\n" + `{"event":"b"}` + "\n"
	if n, err := l.Write([]byte(lines)); n != len(lines) || err != nil {
		t.Errorf("Write: %d, %v", n, err)
	}
	const want = `[{"event":"a\n,"},{"event":"b"}]`
	if !slices.Equal(got, []string{want, want, want}) {
		t.Errorf("got %q, want %s three times", got, want)
	}
	if !json.Valid([]byte(want)) {
		t.Error("this is no JSON")
	}
}

// The end of the context ends a Write that waits for the receiver.
func TestLinesEnd(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	posts := 0
	l := newLines(ctx, t, func(w http.ResponseWriter, _ *http.Request) {
		if posts++; posts == 3 {
			cancel()
		}
		w.WriteHeader(http.StatusBadGateway)
	})
	if n, err := l.Write([]byte("{}\n")); n != 0 || err == nil {
		t.Errorf("Write: %d, %v", n, err)
	}
}

// The error of a post does not show the URL, whose query may hold a key.
func TestPostHidesURL(t *testing.T) {
	err := NewWebhook("http://127.0.0.1:1/?key=hidden", secret, nil, time.Minute).Post(t.Context(), []byte("[]"))
	if err == nil || strings.Contains(err.Error(), "hidden") {
		t.Errorf("a receiver that is down: %v", err)
	}
}
