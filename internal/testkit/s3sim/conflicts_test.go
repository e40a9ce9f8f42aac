package s3sim_test

import (
	"errors"
	"net/http"
	"testing"
	"testing/synctest"

	"github.com/aws/aws-sdk-go-v2/service/s3"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/babelftp/babelftp/internal/testkit/s3sim"
)

// TestConflict has another write take effect while a conditional one is under way.
func TestConflict(t *testing.T) {
	for name, test := range map[string]struct {
		conflicts bool
		other     func(x *fixture)
		status    int
	}{
		"conflict":         {true, func(x *fixture) { x.mustPut("file", "other") }, http.StatusConflict},
		"conflict-deleted": {true, func(x *fixture) { wantCode(x.T, x.delete("file"), "") }, http.StatusNotFound},
		"judged":           {false, func(x *fixture) { x.mustPut("file", "other") }, http.StatusPreconditionFailed},
		"judged-deleted":   {false, func(x *fixture) { wantCode(x.T, x.delete("file"), "") }, http.StatusNotFound},
		"other-key":        {true, func(x *fixture) { x.mustPut("other", "") }, 0},
	} {
		t.Run(name, func(t *testing.T) { conflict(t, test.conflicts, test.other, test.status) })
	}
}

// conflict makes a conditional write on an object, and another write while it is under way.
func conflict(t *testing.T, conflicts bool, other func(x *fixture), want int) {
	synctest.Test(t, func(t *testing.T) {
		x := newFixture(t, s3sim.Options{Profile: profile(t, "aws"), Conflicts: conflicts})
		etag := x.mustPut("file", "old")
		answer := make(chan error)
		go func() {
			_, err := x.slowly().put("file", "new", func(in *s3.PutObjectInput) { in.IfMatch = &etag })
			answer <- err
		}()
		synctest.Wait()
		other(x)
		if err := <-answer; status(err) != want {
			t.Errorf("%v, want the status %d", err, want)
		}
	})
}

// status is the status of the answer that an error stands for, 0 for none.
func status(err error) int {
	if response, ok := errors.AsType[*smithyhttp.ResponseError](err); ok {
		return response.HTTPStatusCode()
	}
	return 0
}
