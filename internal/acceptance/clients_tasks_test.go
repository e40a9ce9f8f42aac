package acceptance_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/s3"
)

// A task is a typical use of an FTP client. It returns an error if the client fails.
type task struct {
	name    string // in the table of docs/conformance.md
	meaning string // explanation in the table; "" if the name is clear
	run     func(w *worker) error
}

// tasks returns all tasks in the order of the table.
func tasks() []task { return slices.Concat(fileTasks, connectionTasks) }

// fileTasks work with files over a passive connection without TLS.
var fileTasks = []task{
	{"list", "", listTask},
	{"names", "names in six scripts", namesTask(names[:7]...)},
	{"odd names", "names with spaces, quotes and characters that have a meaning in URLs", namesTask(names[7:]...)},
	{"upload", "", uploadTask},
	{"download", "", downloadTask},
	{"resume up", "resume an upload at the end of the existing file", resumeUpTask},
	{"resume down", "", resumeDownTask},
	{"rename", "", renameTask},
	{"delete", "", deleteTask},
	{"directories", "", directoriesTask},
	{"tree up", "upload 200 files, and then again, which must send nothing", treeUpTask},
	{"tree down", "", treeDownTask},
	{"time up", "", timeUpTask},
	{"time down", "", timeDownTask},
}

// connectionTasks use different kinds of connections.
var connectionTasks = []task{
	{"passive", "", connect(func(w *worker) { w.connection.data = "passive" })},
	{"active", "", connect(func(w *worker) { w.connection.data = "active" })},
	{"active TLS", "", connect(func(w *worker) {
		w.connection.data, w.connection.tls = "active", "explicit"
	})},
	{"explicit", "", connect(func(w *worker) { w.connection.tls = "explicit" })},
	{"implicit", "", connect((*worker).implicit)},
	{"TLS 1.2", "", connect(func(w *worker) {
		w.connection.tls, w.connection.version = "explicit", "1.2"
	})},
	{"TLS 1.3", "", connect(func(w *worker) {
		w.connection.tls, w.connection.version = "explicit", "1.3"
	})},
	{"IPv6", "", connect(func(w *worker) { w.connection.host = "::1" })},
	{"IPv6 active", "", connect(func(w *worker) {
		w.connection.host, w.connection.data = "::1", "active"
	})},
	{"abort", "an interrupted upload stores nothing", abortTask},
	{"wrong password", "", wrongPasswordTask},
	{"quota", "", quotaTask},
}

// put stores an object in the worker's directory.
func (w *worker) put(name string, content []byte) error {
	return w.site.put(w.t.Context(), w.key(name), string(content))
}

// stored checks the content of an object in the worker's directory.
func (w *worker) stored(name string, content []byte) error {
	bucket, key := w.site.buckets[acme], prefix+w.key(name)
	out, err := w.site.client.GetObject(w.t.Context(), &s3.GetObjectInput{Bucket: &bucket, Key: &key})
	if err != nil {
		return err
	}
	defer out.Body.Close()
	got, err := io.ReadAll(out.Body)
	if err != nil {
		return err
	}
	return equal("object "+key, got, content)
}

// fetched checks the content of a local file.
func (w *worker) fetched(name string, content []byte) error {
	got, err := os.ReadFile(w.file(name))
	if err != nil {
		return err
	}
	return equal(name, got, content)
}

// equal compares contents.
func equal(what string, got, want []byte) error {
	if bytes.Equal(got, want) {
		return nil
	}
	return fmt.Errorf("%s has %d bytes %.40q, want %d %.40q", what, len(got), got, len(want), want)
}

// holds checks that the worker's directory contains exactly these files and no unfinished uploads.
func (w *worker) holds(names ...string) error {
	isDir := func(name string) bool { return name == "" || strings.HasSuffix(name, "/") }
	got := slices.DeleteFunc(w.site.objects(w.t, w.key("")+"/"), isDir)
	want := slices.Sorted(slices.Values(names))
	if !slices.Equal(got, want) {
		return fmt.Errorf("the bucket has %q, want %q", got, want)
	}
	if uploads := w.site.uploads(w.t, w.key("")+"/"); len(uploads) > 0 {
		return fmt.Errorf("the bucket has open multipart uploads of %q", uploads)
	}
	return nil
}

// lists checks that the client lists these names, in any order.
func (w *worker) lists(names ...string) error {
	out, err := w.do("list", w.dir)
	if err != nil {
		return err
	}
	var got []string
	for line := range strings.Lines(out) {
		if line = strings.TrimRight(line, "\r\n"); line != "" && line != "." && line != ".." {
			got = append(got, line)
		}
	}
	slices.Sort(got)
	if want := slices.Sorted(slices.Values(names)); !slices.Equal(got, want) {
		return fmt.Errorf("the list is %q, want %q", got, want)
	}
	return nil
}

func listTask(w *worker) error {
	err := errors.Join(w.put("file", []byte("x")), w.put("two words.txt", []byte("x")), w.put("sub/file", []byte("x")))
	if err != nil {
		return err
	}
	w.setTime("file") // MLSD shows it
	return w.lists("file", "two words.txt", "sub")
}

// setTime sets the time of a file like rclone does, with a fraction of a second.
func (w *worker) setTime(name string) {
	c := w.site.alice(w.t)
	defer c.Close()
	c.Command(213, "MFMT "+aTime.Format("20060102150405")+".123456789 "+w.remote(name))
}

// namesTask uploads, lists and downloads files with these names.
func namesTask(names ...string) func(w *worker) error {
	return func(w *worker) error { return w.exchange(names...) }
}

func (w *worker) exchange(names ...string) error {
	var up, down []string
	for i, name := range names {
		up = append(up, w.write(name, content(100+i)), w.remote(name))
		down = append(down, w.remote(name), w.file("back "+name))
	}
	if err := w.mkdir(); err != nil {
		return err
	}
	if w.client.lacks["upload"] != "" {
		for i, name := range names {
			if err := w.put(name, content(100+i)); err != nil {
				return err
			}
		}
	} else if err := w.run("upload", up...); err != nil {
		return err
	}
	if err := w.holds(names...); err != nil {
		return err
	}
	var errs []error
	if w.client.lacks["list"] == "" {
		errs = append(errs, w.lists(names...))
	}
	if w.client.lacks["download"] == "" {
		errs = append(errs, w.run("download", down...))
		for _, name := range names {
			got, err := os.ReadFile(w.file("back " + name))
			errs = append(errs, err, w.stored(name, got))
		}
	}
	return errors.Join(errs...)
}

// mkdir creates the worker's directory.
func (w *worker) mkdir() error { return w.site.put(w.t.Context(), w.key("")+"/", "") }

// transferSizes are file sizes for no data, one PutObject, and a multipart upload with the site's part size of 5
// MiB.
var transferSizes = []int{0, 1 << 10, 7 << 20, smallSize}

func uploadTask(w *worker) error { return w.upload(transferSizes) }

func (w *worker) upload(sizes []int) error {
	var up, want []string
	for i, size := range sizes {
		name := fmt.Sprintf("file %d", i)
		up = append(up, w.write(name, content(size)), w.remote(name))
		want = append(want, name)
	}
	if err := w.mkdir(); err != nil {
		return err
	}
	if err := w.run("upload", up...); err != nil {
		return err
	}
	errs := []error{w.holds(want...)}
	for _, name := range want {
		sent, err := os.ReadFile(w.file(name))
		errs = append(errs, err, w.stored(name, sent))
	}
	return errors.Join(errs...)
}

func downloadTask(w *worker) error { return w.download(transferSizes) }

func (w *worker) download(sizes []int) error {
	var down []string
	want := map[string][]byte{}
	for i, size := range sizes {
		name := fmt.Sprintf("file %d", i)
		want[name] = content(size)
		if err := w.put(name, want[name]); err != nil {
			return err
		}
		down = append(down, w.remote(name), w.file(name))
	}
	errs := []error{w.run("download", down...)}
	for _, name := range slices.Sorted(maps.Keys(want)) {
		errs = append(errs, w.fetched(name, want[name]))
	}
	return errors.Join(errs...)
}

// resumeSize is the size of resumed files. The first half is large enough for UploadPartCopy.
const resumeSize = 12 << 20

func resumeUpTask(w *worker) error {
	all := content(resumeSize)
	if err := w.put("file", all[:resumeSize/2]); err != nil {
		return err
	}
	if err := w.run("resume-upload", w.write("file", all), w.remote("file")); err != nil {
		return err
	}
	return errors.Join(w.holds("file"), w.stored("file", all), w.moved("upload", resumeSize/2))
}

func resumeDownTask(w *worker) error {
	all := content(resumeSize)
	if err := w.put("file", all); err != nil {
		return err
	}
	if err := w.run("resume-download", w.remote("file"), w.write("file", all[:resumeSize/2])); err != nil {
		return err
	}
	return errors.Join(w.fetched("file", all), w.moved("download", resumeSize/2))
}

// moved checks that the server logged exactly one transfer of the worker's files with this number of bytes.
func (w *worker) moved(direction string, bytes int) error {
	got := w.transfers(direction, 1)
	if want := []string{fmt.Sprint(bytes)}; !slices.Equal(got, want) {
		return fmt.Errorf("%ss have %q bytes, want %q", direction, got, want)
	}
	return nil
}

// transfers returns the sizes of the worker's transfers from the server's log, without empty ones. The log is read
// from a pipe and may lag behind the client, so transfers waits until it has atLeast entries.
func (w *worker) transfers(direction string, atLeast int) (found []string) {
	line := regexp.MustCompile(
		` msg=transfer .* direction=` + direction + ` command=\w+ path="?` + regexp.QuoteMeta(w.dir) +
			`/.* bytes=(\d+) `)
	waitUntil(w.t, func() bool {
		found = nil
		for _, m := range line.FindAllStringSubmatch(w.site.server.stderr.String(), -1) {
			if m[1] != "0" { // some clients request the end of a complete file
				found = append(found, m[1])
			}
		}
		return len(found) >= atLeast
	}, func() {})
	return found
}

func renameTask(w *worker) error {
	if err := w.put("before", []byte("content")); err != nil {
		return err
	}
	if err := w.run("rename", w.remote("before"), w.remote("after")); err != nil {
		return err
	}
	return errors.Join(w.holds("after"), w.stored("after", []byte("content")))
}

func deleteTask(w *worker) error {
	for _, name := range []string{"one", "two", "other"} {
		if err := w.put(name, []byte("content")); err != nil {
			return err
		}
	}
	if err := w.run("delete", w.remote("one"), w.remote("two")); err != nil {
		return err
	}
	return w.holds("other")
}

func directoriesTask(w *worker) error {
	if err := w.mkdir(); err != nil {
		return err
	}
	for _, step := range []struct {
		verb string
		want []string
	}{
		{"mkdir", []string{"", "one two/", "Été/"}},
		{"rmdir", []string{""}},
	} {
		if err := w.run(step.verb, w.remote("one two"), w.remote("Été")); err != nil {
			return err
		}
		if got := w.site.objects(w.t, w.key("")+"/"); !slices.Equal(got, slices.Sorted(slices.Values(step.want))) {
			return fmt.Errorf("after %s the bucket has %q", step.verb, got)
		}
	}
	return nil
}

// aTree returns 200 files in 20 directories.
func aTree() map[string][]byte {
	tree := map[string][]byte{}
	for i := range 200 {
		tree[path.Join(fmt.Sprintf("dir %d", i%20), fmt.Sprintf("file %d.bin", i))] = content(1 + i*10)
	}
	return tree
}

func treeUpTask(w *worker) error {
	tree := aTree()
	local := w.file("tree")
	writeTree(w.t, local, tree)
	day := time.Date(2024, 2, 29, 12, 30, 0, 0, time.UTC)
	for name := range tree {
		if err := os.Chtimes(filepath.Join(local, name), day, day); err != nil {
			return err
		}
	}
	if err := w.mkdir(); err != nil {
		return err
	}
	for range 2 {
		if err := w.run("put-tree", local, w.remote("tree")); err != nil {
			return err
		}
	}
	var want []string
	var errs []error
	for name, data := range tree {
		want = append(want, path.Join("tree", name))
		errs = append(errs, w.stored(path.Join("tree", name), data))
	}
	if n := len(w.transfers("upload", len(tree))); n != len(tree) {
		errs = append(errs, fmt.Errorf("%d uploads of %d files", n, len(tree)))
	}
	return errors.Join(append(errs, w.holds(want...))...)
}

func treeDownTask(w *worker) error {
	tree := aTree()
	for name, data := range tree {
		if err := w.put(path.Join("tree", name), data); err != nil {
			return err
		}
	}
	local := w.file("tree")
	for range 2 {
		if err := w.run("get-tree", w.remote("tree"), local); err != nil {
			return err
		}
	}
	if got := readTree(w.t, local); !maps.EqualFunc(got, tree, slices.Equal) {
		return fmt.Errorf("the tree is %q, or its contents differ", slices.Sorted(maps.Keys(got)))
	}
	if all := w.transfers("download", len(tree)); len(all) != len(tree) {
		return fmt.Errorf("%d downloads of %d files, of %s bytes", len(all), len(tree), all)
	}
	return nil
}

// aTime is an old time in UTC and whole minutes, because listings of old files do not show the time of day.
var aTime = time.Date(2019, 11, 23, 4, 5, 0, 0, time.UTC)

func timeUpTask(w *worker) error {
	if err := w.mkdir(); err != nil {
		return err
	}
	file := w.write("file", []byte("content"))
	if err := os.Chtimes(file, aTime, aTime); err != nil {
		return err
	}
	if err := w.run("put-time", file, w.remote("file")); err != nil {
		return err
	}
	c := w.site.alice(w.t)
	defer c.Close()
	if got, want := c.Command(213, "MDTM "+w.remote("file")), aTime.Format("20060102150405"); got != want {
		return fmt.Errorf("MDTM answers %s, want %s", got, want)
	}
	return nil
}

func timeDownTask(w *worker) error {
	if err := w.put("file", []byte("content")); err != nil {
		return err
	}
	w.setTime("file")
	if err := w.run("get-time", w.remote("file"), w.file("back")); err != nil {
		return err
	}
	info, err := os.Stat(w.file("back"))
	if err != nil {
		return err
	}
	if got := info.ModTime(); !got.Truncate(time.Second).Equal(aTime) || got.Sub(aTime) > 123*time.Millisecond {
		return fmt.Errorf("the file is of %v, want %v", got.UTC(), aTime)
	}
	return nil
}

// connect returns a task that uploads and downloads files over a certain connection.
func connect(change func(w *worker)) func(w *worker) error {
	return func(w *worker) error {
		change(w)
		sizes := transferSizes[1:]
		switch {
		case w.client.lacks["upload"] != "":
			return w.download(sizes)
		case w.client.lacks["download"] != "":
			return w.upload(sizes)
		}
		if err := w.upload(sizes); err != nil {
			return err
		}
		var down []string
		for i := range sizes {
			name := fmt.Sprintf("file %d", i)
			down = append(down, w.remote(name), w.file("back "+name))
		}
		errs := []error{w.run("download", down...)}
		for i := range sizes {
			name := fmt.Sprintf("file %d", i)
			want, err := os.ReadFile(w.file(name))
			errs = append(errs, err, w.fetched("back "+name, want))
		}
		return errors.Join(errs...)
	}
}

// abortTask interrupts an upload. It uses its own server with a low upload rate, so that the interruption happens
// after the multipart upload began and long before it ends.
func abortTask(w *worker) error {
	w.site = newSite(
		w.t, w.site.storage, "      till: {password_hash: "+strconv.Quote(passwordHash(w.t, oldPassword))+"}",
		"    resume: discard", "    limits: {tenant: {upload_rate: 2MiB}}")
	changed := w.site.connection(w.t)
	w.connection.port, w.connection.ca = changed.port, changed.ca
	if err := w.mkdir(); err != nil {
		return err
	}
	cmd, stdout, stderr := w.command(w.t.Context(), "abort", w.write("file", content(60<<20)), w.remote("file"))
	if err := cmd.Start(); err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	const begun = `babelftp_s3_requests_total{operation="CreateMultipartUpload",status="200",tenant="acme"}`
	waitUntil(w.t, func() bool {
		return len(ended) > 0 || w.site.metric(w.t, begun) == 1
	}, func() { w.t.Error("no upload began") })
	if err := syscall.Kill(-cmd.Process.Pid, syscall.SIGINT); err != nil && len(ended) == 0 {
		return err
	}
	if err := <-ended; err != nil && !isExit(err) {
		return fmt.Errorf("%w\n%s\n%s", err, stdout, stderr)
	}
	w.site.awaitMetric(w.t, "babelftp_sessions", 0)
	return w.holds()
}

// isExit reports whether a program exited with a code other than 0 or by a signal.
func isExit(err error) bool {
	_, is := errors.AsType[*exec.ExitError](err)
	return is
}

// refused checks that the client reports an error, either by its exit code or by showing the reply with or without
// the code.
func (w *worker) refused(reply *regexp.Regexp, verb string, names ...string) error {
	switch out, err := w.do(verb, names...); {
	case err == nil && !reply.MatchString(out+w.errors):
		return fmt.Errorf("the client reports no error: %s\n%s", out, w.errors)
	case err != nil && !isExit(err):
		return err
	}
	return nil
}

var (
	loginRefused = regexp.MustCompile("530 |Login incorrect|Identification incorrecte")
	quotaRefused = regexp.MustCompile("552 |Quota exceeded")
)

func wrongPasswordTask(w *worker) error {
	w.connection.password = "wrong"
	if w.client.lacks["list"] != "" {
		return w.refused(loginRefused, "download", w.remote("file"), w.file("file"))
	}
	return w.refused(loginRefused, "list", "/")
}

func quotaTask(w *worker) error {
	name := strings.ReplaceAll(w.client.name, " ", "-")
	w.connection.user = map[bool]string{true: "carol", false: "alice@limited"}[w.client.simple]
	if err := w.refused(quotaRefused, "upload", w.write("file", content(2<<20)), "/"+name); err != nil {
		return err
	}
	if stored := w.site.objects(w.t, "limited/"+name); len(stored) > 0 {
		return fmt.Errorf("the bucket has %q", stored)
	}
	return nil
}
