package drivertest

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"net/http"
	"slices"
	"syscall"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/babelftp/babelftp/driver"
)

// A repetition is an operation with a request that S3 performs without a response, or refuses temporarily. Before the
// driver repeats the request, another client works on the same names and receives its own responses. What it has stored
// or deleted must not be undone.
type repetition struct {
	label     string
	opts      driver.Options
	before    map[string]string // content by key
	run       func(x *fixture) error
	operation string // of the request; on a server where the driver uses another operation, the test proves nothing

	// refused is set if S3 refuses the request; otherwise S3 performs it and the response is lost.
	refused bool
	other   func(x *fixture)

	kinds []error           // allowed errors; nil means success
	after map[string]string // content by key
	needs func(p *driver.Profile) bool
}

// testRepeat lets another client work on a name between two attempts of a request.
func testRepeat(t *testing.T, h Harness) {
	conditionalPut := func(p *driver.Profile) bool { return p.ConditionalPut }
	none := []error{nil}
	unknown := []error{syscall.EAGAIN}
	deny := driver.Options{NoOverwrite: true}
	deleted := func(x *fixture) { x.delete("f") }
	for _, r := range []repetition{
		{
			label: "remove-then-stored", before: map[string]string{"f": "old"}, run: removes("f"),
			operation: "DeleteObject", other: stores("f", "new"), kinds: unknown, after: map[string]string{"f": "new"},
		},
		{
			label: "remove-then-stored-equal", before: map[string]string{"f": "old"}, run: removes("f"),
			operation: "DeleteObject", other: func(x *fixture) { x.write("f", []byte("old")) }, kinds: unknown,
			after: map[string]string{"f": "old"},
		},
		{
			label: "rename-then-stored", before: map[string]string{"f": "old"}, run: renames("f", "g"),
			operation: "DeleteObject", other: stores("f", "new"), kinds: unknown,
			after: map[string]string{"f": "new", "g": "old"},
		},
		{
			label: "rename-then-stored-equal", before: map[string]string{"f": "old"}, run: renames("f", "g"),
			operation: "DeleteObject", other: stores("f", "old"), kinds: unknown,
			after: map[string]string{"f": "old", "g": "old"},
		},
		{
			label: "remove-directory-then-made", before: map[string]string{"d/": ""}, run: func(x *fixture) error {
				return x.RemoveDir("d")
			},
			operation: "DeleteObject", other: func(x *fixture) {
				wantNoError(x, x.session(x.Context(), nil).Mkdir("d", 0))
			},
			kinds: unknown, after: map[string]string{"d/": ""},
		},
		{
			label: "append-refused-then-equal-appended", before: map[string]string{"f": "old"},
			run: appended("f", "line"), operation: "PutObject", refused: true,
			other: stores("f", "oldline"), kinds: []error{syscall.ESTALE, syscall.EAGAIN},
			after: map[string]string{"f": "oldline"},
		},
		{
			label: "append-refused-then-deleted", before: map[string]string{"f": "old"},
			run: appended("f", "line"), operation: "PutObject", refused: true,
			other: deleted, kinds: []error{syscall.ESTALE}, after: map[string]string{},
		},
		{
			label: "append-then-stored-as-before", before: map[string]string{"f": "b"},
			run: appended("f", "b"), operation: "PutObject",
			other: stores("f", "b"), kinds: unknown, after: map[string]string{"f": "b"},
		},
		{
			label: "lock-refused-then-equal-stored", opts: deny, run: written("lock", "locked"),
			operation: "PutObject", refused: true, other: stores("lock", "locked"), kinds: []error{fs.ErrExist},
			after: map[string]string{"lock": "locked"}, needs: conditionalPut,
		},
		{
			label: "rename-refused-then-equal-stored", opts: deny, before: map[string]string{"f": "same"},
			run:       renames("f", "g"),
			operation: "CopyObject", refused: true, other: stores("g", "same"), kinds: []error{fs.ErrExist},
			after: map[string]string{"f": "same", "g": "same"},
		},
		{
			label: "rename-by-put-refused-then-equal-stored", opts: deny, before: map[string]string{"f": "same"},
			run:       renames("f", "g"),
			operation: "PutObject", refused: true, other: stores("g", "same"), kinds: []error{fs.ErrExist},
			after: map[string]string{"f": "same", "g": "same"},
		},
		{
			label: "write-then-replaced", before: map[string]string{"f": "old"}, run: written("f", "mine"),
			operation: "PutObject", other: func(x *fixture) {
				x.wantContent("f", []byte("mine"))
				x.delete("f")
				x.put("f", []byte("other"))
			},
			kinds: unknown, after: map[string]string{"f": "other"},
		},
		{
			label: "write-new-then-deleted", opts: deny, run: written("f", "mine"),
			operation: "PutObject", other: deleted, kinds: unknown, after: map[string]string{},
		},
		{
			label: "write-then-deleted", run: written("f", "mine"),
			operation: "PutObject", other: deleted, kinds: unknown, after: map[string]string{},
		},
		{
			label: "write-parts-then-replaced", run: written("f", string(random(h.PartSize+1))),
			operation: "CompleteMultipartUpload", other: stores("f", "other"), kinds: unknown,
			after: map[string]string{"f": "other"},
		},
		{
			label: "write-parts-refused-then-stored", opts: deny, run: written("f", string(random(h.PartSize+1))),
			operation: "CompleteMultipartUpload", refused: true, other: stores("f", string(random(h.PartSize+1))),
			kinds: []error{fs.ErrExist},
			after: map[string]string{"f": string(random(h.PartSize + 1))}, needs: func(p *driver.Profile) bool {
				return p.ConditionalComplete
			},
		},
		{
			label: "rename-copied-then-source-deleted", before: map[string]string{"f": "old", "g": "older"},
			run:       renames("f", "g"),
			operation: "CopyObject", other: deleted, kinds: none, after: map[string]string{"g": "old"},
		},
		{
			label: "rename-copied-then-stored-equal", before: map[string]string{"f": "same"}, run: renames("f", "g"),
			operation: "CopyObject",
			other:     func(x *fixture) { x.write("f", []byte("same")) }, kinds: []error{syscall.ESTALE},
			after: map[string]string{"f": "same", "g": "same"},
		},
		{
			label: "rename-directory-copied-then-stored-equal", before: map[string]string{"d/f": "same"},
			run: renames("d", "e"), operation: "CopyObject",
			other: func(x *fixture) { x.write("d/f", []byte("same")) }, kinds: []error{syscall.ESTALE},
			after: map[string]string{"d/f": "same", "e/f": "same"},
		},
		{
			label: "rename-refused-then-stored", before: map[string]string{"f": "old"}, run: renames("f", "g"),
			operation: "DeleteObject", refused: true,
			other: stores("f", "new"), kinds: []error{syscall.ESTALE}, after: map[string]string{"f": "new", "g": "old"},
		},
		{
			label: "remove-refused-then-stored", before: map[string]string{"f": "old"}, run: removes("f"),
			operation: "DeleteObject", refused: true, other: stores("f", "new"), kinds: []error{syscall.ESTALE},
			after: map[string]string{"f": "new"},
		},
		{
			label: "rename-directory-then-stored-equal", before: map[string]string{"d/f": "old"},
			run: renames("d", "e"), operation: "DeleteObject", other: stores("d/f", "old"), kinds: unknown,
			after: map[string]string{"d/f": "old", "e/f": "old"},
		},
		{
			label: "rename-directory-then-directory-made", before: map[string]string{"d/": ""}, run: renames("d", "e"),
			operation: "DeleteObject", other: stores("d/", ""), kinds: unknown,
			after: map[string]string{"d/": "", "e/": ""},
		},
		{
			label: "remove-all-then-stored-equal", before: map[string]string{"d/f": "old"},
			run: func(x *fixture) error {
				return x.RemoveAll("d")
			},
			operation: "DeleteObjects", other: stores("d/f", "old"), kinds: unknown,
			after: map[string]string{"d/f": "old"},
		},
		{
			label: "rename-then-both-stored", opts: deny, before: map[string]string{"f": "old"}, run: renames("f", "g"),
			operation: "DeleteObject", refused: true, other: func(x *fixture) {
				x.put("f", []byte("new"))
				x.delete("g")
				x.put("g", []byte("old"))
			},
			kinds: []error{syscall.ESTALE}, after: map[string]string{"f": "new", "g": "old"},
		},
	} {
		t.Run(r.label, func(t *testing.T) {
			if r.needs != nil && !r.needs(&h.Profile) {
				return // docs/guarantees.md describes what happens without the condition
			}
			x := h.open(t, &r.opts)
			for key, content := range r.before {
				x.put(key, []byte(content))
			}
			interfered := x.interfere(r)
			err := r.run(x)
			if !slices.ContainsFunc(r.kinds, func(kind error) bool { return errors.Is(err, kind) }) && *interfered {
				t.Errorf("got error %v, want one of %v", err, r.kinds)
			}
			if !*interfered {
				return // the driver sends another request on this server
			}
			var keys []string
			for key, content := range r.after {
				x.wantContent(key, []byte(content))
				keys = append(keys, key)
			}
			x.wantKeys(keys...)
		})
	}
}

// stores returns a function that stores an object as another client.
func stores(key, content string) func(*fixture) {
	return func(x *fixture) { x.put(key, []byte(content)) }
}

// written, appended and removes return functions that change a file through the driver.
func written(name, content string) func(*fixture) error {
	return func(x *fixture) error { return x.tryWrite(name, []byte(content)) }
}

func appended(name, content string) func(*fixture) error {
	return func(x *fixture) error { return x.tryAppend(name, []byte(content)) }
}

func removes(name string) func(*fixture) error {
	return func(x *fixture) error { return x.RemoveFile(name) }
}

// interfere lets the other client work on the names once, after the first matching request of the operation. The result
// becomes true when it has done so.
func (x *fixture) interfere(r repetition) *bool {
	done := false
	once := func() {
		done = true
		x.spy.Before(nil)
		x.spy.After(nil)
		r.other(x)
	}
	if r.refused {
		x.spy.Before(func(_ context.Context, operation string, in any) error {
			if operation != r.operation || done || isRecord(in) {
				return nil
			}
			once()
			return responseError(http.StatusServiceUnavailable, "SlowDown")
		})
		return &done
	}
	x.spy.After(func(operation string, _ any) error {
		if operation != r.operation || done {
			return nil
		}
		once()
		return io.ErrUnexpectedEOF
	})
	return &done
}

// isRecord reports whether a request stores a record of the journal.
func isRecord(in any) bool {
	put, ok := in.(*s3.PutObjectInput)
	return ok && put.Key != nil && len(*put.Key) > 0 && (*put.Key)[0] == '.'
}
