package view

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"testing"

	"github.com/babelftp/babelftp/internal/testkit/must"
)

// A recorder records the events of changes that have succeeded.
type recorder struct{ events []string }

func (r *recorder) Begin(_ context.Context, c FileChange) (Event, error) { return &recorded{r, c}, nil }

type recorded struct {
	of     *recorder
	change FileChange
}

func (r *recorded) End(_ context.Context, etag string, err error) error {
	if err != nil {
		return err
	}
	text := fmt.Sprint(r.change.Kind, " ", r.change.Path)
	if r.change.ToPath != "" {
		text += " " + r.change.ToPath
	}
	if r.change.Size != nil {
		text += fmt.Sprint(" ", *r.change.Size, " bytes")
	}
	if r.change.Kind == Upload && etag == "" || r.change.URI == "" {
		text += " without ETag or URI"
	}
	r.of.events = append(r.of.events, text)
	return nil
}

// The event of an upload has the size and the ETag of the whole file, even if the client has sent only a part of it.
func TestSizeInEvent(t *testing.T) {
	for _, tc := range []struct {
		name    string
		flag    int
		offset  int64
		content string
		want    string
	}{
		{"whole", os.O_TRUNC, 0, "abc", "upload /dir/file 3 bytes"},
		{"appended", os.O_APPEND, 0, "abc", "upload /dir/file 11 bytes"},
		{"the end", 0, 6, "abc", "upload /dir/file 9 bytes"},
		{"the middle", 0, 2, "abc", "upload /dir/file 8 bytes"},
		{"nothing in the middle", 0, 2, "", "upload /dir/file 8 bytes"},
		{"nothing appended", os.O_APPEND, 0, "", "upload /dir/file 8 bytes"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := &recorder{}
			v := &View{Mounts: at(newStorage(t)), Directories: NewDirectories("/"), Events: r, MaxSize: 11}
			file, err := v.For(t.Context(), nil).OpenWriter("/dir/file", os.O_CREATE|tc.flag, tc.offset) // 8 bytes
			must.OK(t, err)
			must.Write(t, file, tc.content)
			must.OK(t, file.Close())
			if !slices.Equal(r.events, []string{tc.want}) {
				t.Errorf("got events %q, want %q", r.events, tc.want)
			}
		})
	}
}

// For the receiver of events, files with skipped names do not exist.
func TestSkippedNames(t *testing.T) {
	for _, tc := range []struct {
		name string
		do   func(f *Files) error
		want []string
	}{
		{"upload and rename", func(f *Files) error {
			return errors.Join(write(f, "/in/a.csv.part", "abc"), f.Rename("/in/a.csv.part", "/in/a.csv"))
		}, []string{"upload /in/a.csv 3 bytes"}},
		{"through two skipped names", func(f *Files) error {
			return errors.Join(write(f, "/a.tmp", "abc"), f.Rename("/a.tmp", "/a.part"), f.Rename("/a.part", "/out/a"))
		}, []string{"upload /out/a 3 bytes"}},
		{"an upload that is removed", func(f *Files) error {
			return errors.Join(write(f, "/a.part", "abc"), f.RemoveFile("/a.part"))
		}, nil},
		{"copies", func(f *Files) error {
			return errors.Join(write(f, "/a.part", "abc"), f.Copy("/a.part", "/b.part"), f.Copy("/a.part", "/a"),
				f.Copy("/a", "/c.part"))
		}, []string{"upload /a 3 bytes"}},
		{"a file that gets a skipped name", func(f *Files) error {
			return f.Rename("/dir/file", "/dir/file.tmp")
		}, []string{"delete /dir/file"}},
		{"directories", func(f *Files) error {
			return errors.Join(f.Rename("/dir", "/dir.part"), write(f, "/dir.part/b", "abc"),
				f.Rename("/dir.part", "/dir"), f.Mkdir("/x.part"), f.RemoveAll("/x.part"))
		}, []string{"rename /dir /dir.part", "upload /dir.part/b 3 bytes", "rename /dir.part /dir", "delete /x.part"}},
		{"other names", func(f *Files) error {
			return errors.Join(write(f, "/part", "abc"), write(f, "/a.PART", "abc"), f.Rename("/part", "/a.part.gz"))
		}, []string{"upload /part 3 bytes", "upload /a.PART 3 bytes", "rename /part /a.part.gz"}},
		{"another Unicode form", func(f *Files) error { return write(f, "/cafe\u0301", "abc") }, nil},
		{"nothing", func(f *Files) error {
			if err := f.Rename("/none.part", "/none"); err == nil {
				return errors.New("nothing was renamed")
			}
			return nil
		}, nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := &recorder{}
			v := &View{
				Mounts: at(newStorage(t)), Directories: NewDirectories("/"), Events: r,
				Skip: NewNames([]string{"*.part", "*.tmp", "caf\u00e9"}),
			}
			must.OK(t, tc.do(v.For(t.Context(), nil)))
			if !slices.Equal(r.events, tc.want) {
				t.Errorf("got events %q, want %q", r.events, tc.want)
			}
		})
	}
}
