package embeddeds3_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/babelftp/babelftp/internal/storage/embeddeds3"
	"github.com/babelftp/babelftp/internal/testkit/must"
)

// crashVariable names the data folder for a test process that serves it until it is killed.
const crashVariable = "BABELFTP_TEST_CRASH"

func TestMain(m *testing.M) {
	if dir := os.Getenv(crashVariable); dir != "" {
		fmt.Fprintln(os.Stderr, "crash server:", serveHalfAnUpload(dir))
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// serveHalfAnUpload starts a server in dir, stores an object, uploads a part of a multipart upload, and sends half of
// another object. Then it prints a line and blocks.
func serveHalfAnUpload(dir string) error {
	ctx := context.Background()
	s, err := embeddeds3.Start(ctx, embeddeds3.Options{Dir: dir})
	if err != nil {
		return err
	}
	client, name := s.Client(), aws.String("bucket")
	if _, err := client.CreateBucket(ctx, &s3.CreateBucketInput{Bucket: name}); err != nil {
		return err
	}
	_, err = client.PutObject(ctx, &s3.PutObjectInput{
		Bucket: name, Key: aws.String("whole/名前"), Body: strings.NewReader("whole"),
		ContentType: aws.String("text/x-test"), Metadata: map[string]string{"mtime": "1.5"},
	})
	if err != nil {
		return err
	}
	created, err := client.CreateMultipartUpload(
		ctx, &s3.CreateMultipartUploadInput{Bucket: name, Key: aws.String("parts")})
	if err != nil {
		return err
	}
	_, err = client.UploadPart(ctx, &s3.UploadPartInput{
		Bucket: name, Key: aws.String("parts"), UploadId: created.UploadId, PartNumber: aws.Int32(1),
		Body: strings.NewReader("part"),
	})
	if err != nil {
		return err
	}
	taken := make(chan struct{})
	go func() {
		<-taken
		fmt.Println("half an upload")
	}()
	return putHalf(ctx, client, "half", taken)
}

// After a server was killed, the next one has all complete objects with their attributes, and nothing of the incomplete
// uploads.
func TestKilledServerLeavesNoPartialObjects(t *testing.T) {
	dir := t.TempDir()
	executable, err := os.Executable()
	must.OK(t, err)
	cmd := exec.Command(executable)
	cmd.Env = append(os.Environ(), crashVariable+"="+dir, "TMPDIR="+t.TempDir())
	cmd.Stderr = os.Stderr
	stdout, err := cmd.StdoutPipe()
	must.OK(t, err)
	must.OK(t, cmd.Start())
	line, readErr := bufio.NewReader(stdout).ReadString('\n')
	killErr := cmd.Process.Kill()
	waitErr := cmd.Wait()
	if readErr != nil || killErr != nil {
		t.Fatalf("unexpected output of the server %q, %v; %v; %v", line, readErr, killErr, waitErr)
	}
	if before := objectFiles(t, dir); len(before) < 3 {
		t.Fatalf("got only the files %q of the killed server", before)
	}

	b := bucket{Client: start(t, dir).Client(), name: "bucket"}
	if got := b.keys(t); !slices.Equal(got, []string{"whole/名前"}) {
		t.Errorf("unexpected keys %q", got)
	}
	if got := b.get(t, "whole/名前"); string(got) != "whole" {
		t.Errorf("unexpected content %q", got)
	}
	head, err := b.HeadObject(t.Context(), &s3.HeadObjectInput{Bucket: &b.name, Key: aws.String("whole/名前")})
	if err != nil || head.Metadata["mtime"] != "1.5" || aws.ToString(head.ContentType) != "text/x-test" {
		t.Errorf("unexpected metadata %v, %v", head, err)
	}
	if open := b.openUploads(t); open > 0 {
		t.Errorf("got %d open uploads", open)
	}
	if got, want := objectFiles(t, dir), []string{".babelftp-s3.lock", "bucket/whole/名前"}; !slices.Equal(got, want) {
		t.Errorf("got files %q, want %q", got, want)
	}
}
