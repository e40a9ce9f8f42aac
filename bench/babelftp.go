package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/babelftp/babelftp/internal/testkit/s3test"
)

// configuration is the default configuration with a bucket. It allows any number of sessions of one client.
const configuration = `
listen: "127.0.0.1:0"
metrics_listen: ""
admin_socket: %[8]q
limits: {address: {sessions: 0}}
s3:
  endpoint: %[1]q
  region: %[2]q
  path_style: true
  access_key_id: %[3]q
  secret_access_key: %[4]q
tenants:
  bench:
    bucket: %[5]q
    users:
      bench: {password_hash: %[6]q}
      attacker: {password_hash: %[6]q}
%[7]s
`

const userAndPassword = "bench"

// babelftp is a binary and its running processes, one for each link.
type babelftp struct {
	binary  string
	lines   []string // appended to the configuration
	socket  string   // admin socket; empty for none
	server  *s3test.Server
	content content
	dir     string // for configurations and logs
	running map[string]*running
}

// build builds babelftp like a release.
func build(ctx context.Context, repository, dir string) (string, error) {
	binary := filepath.Join(dir, "babelftp")
	cmd := exec.CommandContext(
		ctx, "go", "build", "-trimpath", "-buildvcs=false", "-ldflags", "-s -w", "-o", binary, "./cmd/babelftp")
	cmd.Dir = repository
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%v: %w\n%s", cmd, err, out)
	}
	return binary, nil
}

// start starts a process that uses the S3 server at endpoint. It replaces the previous process of the link.
func (b *babelftp) start(ctx context.Context, link, endpoint string) (*ftpServer, error) {
	b.stop(link)
	dir, err := os.MkdirTemp(b.dir, "babelftp-")
	if err != nil {
		return nil, err
	}
	hash, err := b.hash(ctx)
	if err != nil {
		return nil, err
	}
	file := filepath.Join(dir, "babelftp.yaml")
	text := fmt.Sprintf(
		configuration, endpoint, b.server.Region, b.server.AccessKeyID, b.server.SecretAccessKey, bucket, hash,
		strings.Join(b.lines, "\n"), b.socket)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		return nil, err
	}
	output, err := os.Create(filepath.Join(dir, "output.log")) // reading from a pipe would use CPU time of the bench
	if err != nil {
		return nil, err
	}
	defer output.Close()
	r := &running{cmd: exec.Command(b.binary, "serve", "--config", file), ended: make(chan struct{})}
	r.cmd.Stdout, r.cmd.Stderr = output, output
	if err := r.cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		defer close(r.ended)
		_ = r.cmd.Wait() // the output has the reason
	}()
	b.running[link] = r
	address, err := r.address(ctx, output.Name())
	if err != nil {
		return nil, fmt.Errorf("%s: %w", b.binary, err)
	}
	return &ftpServer{address: address, user: userAndPassword, password: userAndPassword, dir: "/", content: b.content},
		nil
}

// hash returns the hash of the password.
func (b *babelftp) hash(ctx context.Context) (string, error) {
	cmd := exec.CommandContext(ctx, b.binary, "hash-password")
	cmd.Stdin = strings.NewReader(userAndPassword + "\n")
	out, err := cmd.Output()
	return strings.TrimSpace(string(out)), err
}

// stop kills the process of a link.
func (b *babelftp) stop(link string) {
	if r := b.running[link]; r != nil {
		_ = r.cmd.Process.Kill() // the process may have ended
		<-r.ended
		delete(b.running, link)
	}
}

func (b *babelftp) stopAll() {
	for link := range b.running {
		b.stop(link)
	}
}

// running is a process of babelftp.
type running struct {
	cmd   *exec.Cmd
	ended chan struct{} // closed when the process has ended
	admin string        // address of the admin listener; empty without one
}

// listens and administers match the log lines for the open listeners.
var (
	listens     = regexp.MustCompile(`msg=listening key=listen address=(\S+)`)
	administers = regexp.MustCompile(`msg=listening key=admin\.listen address=(\S+)`)
)

// address waits until the process serves and returns its address.
func (r *running) address(ctx context.Context, output string) (string, error) {
	const interval = 10 * time.Millisecond
	for {
		text, err := os.ReadFile(output)
		if err != nil {
			return "", err
		}
		if m := listens.FindSubmatch(text); m != nil && strings.Contains(string(text), "msg=serving") {
			if a := administers.FindSubmatch(text); a != nil {
				r.admin = string(a[1])
			}
			return string(m[1]), nil
		}
		select {
		case <-r.ended:
			return "", fmt.Errorf("%v:\n%s", r.cmd.ProcessState, text)
		case <-ctx.Done():
			return "", ctx.Err()
		case <-time.After(interval):
		}
	}
}
