package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/babelftp/babelftp/internal/admin"
)

// console measures how long the console waits for its data, next to many sessions and with a large audit log, and how
// long its page takes in a browser.
func console(sessions, lines int, watch time.Duration) work {
	name := fmt.Sprintf("console with %d sessions and %d audit lines", sessions, lines)
	return work{name, func(ctx context.Context, j *job) error {
		if j.contender.own == nil {
			return nil
		}
		dir, err := os.MkdirTemp(j.contender.own.dir, "console-")
		if err != nil {
			return err
		}
		defer os.RemoveAll(dir)
		log := filepath.Join(dir, "audit.log")
		if err := writeAuditLog(log, lines); err != nil {
			return err
		}
		server := *j.contender.own
		server.running, server.socket = map[string]*running{}, filepath.Join(dir, "admin.sock")
		hash, err := server.hash(ctx)
		if err != nil {
			return err
		}
		server.lines = append([]string{
			fmt.Sprintf("audit: {file: %q}", log),
			fmt.Sprintf("admin: {listen: \"127.0.0.1:0\", users: %q}", userAndPassword+":"+hash),
		}, server.lines...)
		defer server.stopAll()
		target, err := server.start(ctx, direct, j.endpoints()[direct])
		if err != nil {
			return err
		}
		for range sessions {
			s, err := target.open(ctx)
			if err != nil {
				return err
			}
			defer s.close()
		}
		client := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", server.socket)
		}}
		defer client.CloseIdleConnections()
		for _, of := range []struct{ row, path string }{
			{"latest lines", "/activity"},
			{"lines of a user", "/activity?user=user7"},
			{"a file that was renamed", "/activity?path=/in/7/file-7.csv"},
			{"a user that does not exist", "/activity?user=nobody"},
			{"sessions", "/sessions"}, {"problems", "/problems"}, {"history", "/history"},
		} {
			begin := time.Now()
			if err := askConsole(ctx, client, of.path); err != nil {
				return fmt.Errorf("%s: %w", of.path, err)
			}
			j.report(amount(name+": "+of.row, "ms"), float64(time.Since(begin).Microseconds())/1000)
		}
		return page(ctx, "http://"+server.running[direct].admin, name, watch, j)
	}}
}

// askConsole reads the response to a request.
func askConsole(ctx context.Context, client http.RoundTripper, path string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://localhost"+admin.Root+path, nil)
	if err != nil {
		return err
	}
	response, err := client.RoundTrip(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err == nil && (response.StatusCode != http.StatusOK || !json.Valid(text)) {
		err = fmt.Errorf("%s: %s", response.Status, text)
	}
	return err
}

// writeAuditLog writes lines of 500 users, each of which uploads files and renames one in ten.
func writeAuditLog(name string, lines int) error {
	file, err := os.Create(name)
	if err != nil {
		return err
	}
	defer file.Close()
	out := bufio.NewWriter(file)
	begin := time.Now().Add(-time.Duration(lines) * time.Second)
	for n := range lines {
		const uri = "s3://bench/inbox"
		user, path, event, to := n%500, fmt.Sprintf("/in/%d/file-%d.csv", n%500, n), "upload", ""
		if n%10 == 9 {
			path, event = fmt.Sprintf("/in/%d/file-%d.csv", (n-2)%500, n-2), "rename"
			next := strings.Replace(path, "/in/", "/done/", 1)
			to = fmt.Sprintf(`,"to_path":%q,"to_s3_uri":%q`, next, uri+next)
		}
		fmt.Fprintf(out, `{"time":%q,"event":%q,"session":"9f0c2a7b51d3e846","client":"192.0.2.%d:50122","tenant":"bench",`+
			`"user":"user%d","tls":true,"outcome":"ok","command":"STOR","code":226,"duration_ms":84,"bytes":51200,`+
			`"path":%q,"s3_uri":%q,"size":51200,"etag":"900150983cd24fb0d6963f7d28e17f72"%s}`+"\n",
			begin.Add(time.Duration(n)*time.Second).UTC().Format(time.RFC3339Nano), event, n%250, user, path, uri+path,
			to)
	}
	return out.Flush()
}
