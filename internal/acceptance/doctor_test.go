package acceptance_test

import (
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/babelftp/babelftp/internal/testkit/ftptest"
	"github.com/babelftp/babelftp/internal/testkit/must"
	"github.com/babelftp/babelftp/internal/testkit/s3test"
)

// diagnose returns what babelftp doctor finds in a log, as "client finding".
func diagnose(t *testing.T, log string) []string {
	t.Helper()
	p := launchWith(t, log, binary(t), "doctor", "--json", "--log", "-")
	code := p.wait()
	var found []struct {
		Finding, Level, Client, Cause, Change string
		Evidence                              []string
	}
	if err := json.Unmarshal([]byte(p.stdout.String()), &found); err != nil {
		t.Fatalf("%v: %s%s", err, p.stdout.String(), p.stderr.String())
	}
	shown := []string{}
	wrong := 0
	for _, f := range found {
		t.Logf("%s %s: %s %s %q", f.Client, f.Finding, f.Cause, f.Change, f.Evidence)
		if f.Cause == "" || f.Change == "" || len(f.Evidence) == 0 {
			t.Errorf("incomplete: %+v", f)
		}
		if f.Level == "wrong" {
			wrong = 1
		}
		shown = append(shown, f.Client+" "+f.Finding)
	}
	if code != wrong {
		t.Errorf("exit code %d, want %d", code, wrong)
	}
	slices.Sort(shown)
	return shown
}

// An administrator examines a client of a running server that requests passive ports and does not connect to them.
func TestDoctorAsksServer(t *testing.T) {
	t.Parallel()
	address := ftptest.FreeAddresses(t, 1)[0]
	s := newSite(t, s3test.Start(t, "minio"), fmt.Sprintf("admin: {listen: %q, users: %q}", address,
		"ann:"+passwordHash(t, password)), "stall_timeout: 2s")
	const scanner = "127.0.0.3"
	c := ftptest.New(t, ftptest.DialFrom(t, scanner, s.address))
	c.Reply(220)
	c.Login("alice@acme", password)
	for range 2 {
		c.Command(229, "EPSV")
		c.Command(150, "LIST")
		c.Reply(425)
	}
	file := newFolder(t).write("password", []byte(password+"\n"))
	p := launch(t, binary(t), "doctor", "--address", scanner, "--url", "http://"+address, "--as", "ann", "--password-file", file)
	const want = "! alice (127.0.0.3): 127.0.0.3 cannot reach"
	if code := p.wait(); code != 1 || !strings.Contains(p.stdout.String(), want) {
		t.Errorf("exit code %d: %s%s", code, p.stdout.String(), p.stderr.String())
	}
}

// Each client has one problem. babelftp doctor identifies all of them from the server's log.
func TestDoctorReadsLog(t *testing.T) {
	t.Parallel()
	storage := s3test.Start(t, "minio")
	lost := storage.Bucket(t)
	const tenant = "  %[1]s:\n    bucket: %[2]s\n    prefix: %[1]s/\n    %[3]s\n    users:\n      %[1]s: {password_hash: HASH}"
	s := newSite(t, storage, fmt.Sprintf(tenant, "full", "BUCKET", "quota: 10B"),
		fmt.Sprintf(tenant, "strict", "BUCKET", "tls: {required: true}"),
		fmt.Sprintf(tenant, "single", "BUCKET", "limits: {user: {sessions: 1}}"),
		fmt.Sprintf(tenant, "lost", lost, "default_language: en"), "log: {level: debug}", "stall_timeout: 2s",
		"abandoned_uploads: 0") // otherwise the first sweep may find that the bucket is missing
	if _, err := storage.Client().DeleteBucket(t.Context(), &s3.DeleteBucketInput{Bucket: &lost}); err != nil {
		t.Fatal(err)
	}
	from := func(address string) *ftptest.Client {
		c := ftptest.New(t, ftptest.DialFrom(t, address, s.address))
		c.Reply(220)
		return c
	}
	login := func(address, user string) *ftptest.Client {
		c := from(address)
		c.Login(user, password)
		return c
	}
	// upload ends with this code.
	upload := func(c *ftptest.Client, name string, want int) {
		t.Helper()
		reply, err := c.Upload("STOR "+name, "twelve bytes")
		if code, _ := ftptest.Parse(reply); err != nil || code != want {
			t.Errorf("STOR %s: got %s, %v; want %d", name, reply, err, want)
		}
		c.Command(221, "QUIT")
	}

	fine := login("127.0.0.2", "alice@acme")
	fine.Command(200, "TYPE A")
	fine.Transfer("LIST")
	fine.Command(200, "TYPE I")
	upload(fine, "fine.jpg", 226)

	scanner := login("127.0.0.3", "alice@acme")
	for range 2 {
		scanner.Command(229, "EPSV")
		scanner.Command(150, "LIST")
		scanner.Reply(425)
	}
	scanner.Command(221, "QUIT")

	from("127.0.0.4").Command(530, "USER strict")

	ascii := login("127.0.0.5", "alice@acme")
	ascii.Command(200, "TYPE A")
	upload(ascii, "scan.jpg", 226)

	login("127.0.0.6", "alice@acme").Command(501, "SIZE M\xfcller.txt")
	upload(login("127.0.0.7", "full"), "large", 552)
	upload(login("127.0.0.8", "lost"), "nowhere", 550)

	first := login("127.0.0.9", "single")
	second := from("127.0.0.9")
	second.Command(331, "USER single")
	second.Command(421, "PASS "+password)
	first.Command(221, "QUIT")

	device := login("127.0.0.10", "alice@acme")
	device.Command(500, "XMODE fast")
	_ = device.Close()

	wrong := from("127.0.0.11")
	wrong.Command(331, "USER alice@acme")
	wrong.Command(530, "PASS wrong")

	secure := tls.Client(ftptest.DialFrom(t, "127.0.0.12", s.implicit), &tls.Config{ServerName: "ftp.acme.example"})
	if err := secure.Handshake(); err == nil {
		t.Error("the certificate is trusted")
	}
	_ = secure.Close()

	// This device uses implicit TLS on the explicit port.
	mistaken := ftptest.DialFrom(t, "127.0.0.13", s.address)
	must.Write(t, mistaken, "\x16\x03\x01\x00\x05")
	_, _ = io.Copy(io.Discard, mistaken)

	login("127.0.0.14", "alice@acme").Command(501, "PORT 192,0,2,1,200,0")

	s.stop(t)
	got := diagnose(t, s.server.stderr.String())
	want := []string{
		" shutting-down", "127.0.0.10 client-stops", "127.0.0.11 login-refused", "127.0.0.12 certificate",
		"127.0.0.13 protocol-mismatch", "127.0.0.14 active-failed", "127.0.0.3 ports-unreachable",
		"127.0.0.4 tls-required", "127.0.0.5 type-ascii", "127.0.0.6 charset", "127.0.0.7 storage-full",
		"127.0.0.8 storage-refuses", "127.0.0.9 limit",
	}
	if !slices.Equal(got, want) {
		t.Errorf("found %q, want %q", got, want)
		t.Log(s.server.stderr.String())
	}
}
