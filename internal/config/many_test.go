package config

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/babelftp/babelftp/internal/testkit/must"
)

// BenchmarkManyTenants loads a configuration of 3,000 tenants and 30,000 users from a single file, and from a folder
// with a file for each tenant. Then it reloads it after one tenant has changed. Each load may take 3 s of CPU time,
// and the process 250 MiB of memory:
//
//	go test ./internal/config -run - -bench ManyTenants -benchtime 3x
func BenchmarkManyTenants(b *testing.B) {
	const (
		tenants, users = 3000, 10
		most           = 3 * time.Second
		mostMemory     = 250 << 20
	)
	// tenant writes the keys of a tenant, indented by spaces.
	tenant := func(w io.Writer, spaces, i int, prefix string) {
		in := strings.Repeat(" ", spaces)
		fmt.Fprintf(w, "%[1]shosts: [t%[2]d.example.com]\n%[1]sbucket: data-%[2]d\n", in, i)
		fmt.Fprintf(w, "%[1]sprefix: %[2]s/\n%[1]susers:\n", in, prefix)
		for j := range users {
			fmt.Fprintf(w, "%[1]s  u%[2]d-%[3]d:\n%[1]s    password_hash: %[4]q\n%[1]s    home: /h\n", in, i, j, hash)
			fmt.Fprintf(w, "%s    permissions: [list, read]\n", in)
		}
	}
	create := func(b *testing.B, name string) *bufio.Writer {
		b.Helper()
		f, err := os.Create(name)
		must.OK(b, err)
		b.Cleanup(func() { _ = f.Close() })
		return bufio.NewWriter(f)
	}
	dir := b.TempDir()
	file := filepath.Join(dir, "babelftp.yaml")
	inFile := func(b *testing.B, prefix string) {
		f := create(b, file)
		fmt.Fprintln(f, "tenants:")
		for i := range tenants {
			fmt.Fprintf(f, "  t%d:\n", i)
			tenant(f, 4, i, prefix)
			prefix = "in"
		}
		_ = f.Flush()
	}
	folder := filepath.Join(dir, "tenants")
	must.OK(b, os.Mkdir(folder, 0o700))
	inFolder := func(b *testing.B, prefix string) {
		f := create(b, file)
		fmt.Fprintln(f, "tenants_dir: tenants\ntenant_defaults:\n  greeting: {en: Welcome}\n  quota: 1GiB")
		fmt.Fprintln(f, "  limits: {tenant: {sessions: 10}}")
		_ = f.Flush()
		for i := range tenants {
			name := filepath.Join(folder, fmt.Sprintf("t%d.yaml", i))
			if _, err := os.Stat(name); err == nil && i > 0 {
				break // the files of other tenants are unchanged
			}
			var text bytes.Buffer
			tenant(&text, 0, i, prefix)
			must.OK(b, os.WriteFile(name, text.Bytes(), 0o600))
			prefix = "in"
		}
	}
	load := func(b *testing.B, l *Loader) {
		b.Helper()
		if _, err := l.Load(); err != nil {
			b.Fatal(err)
		}
	}
	processors := func() time.Duration { // CPU time used so far
		var u unix.Rusage
		must.OK(b, unix.Getrusage(unix.RUSAGE_SELF, &u))
		return time.Duration(u.Utime.Nano() + u.Stime.Nano())
	}
	report := func(b *testing.B, began time.Duration) {
		b.Helper()
		each := (processors() - began) / time.Duration(b.N)
		if b.ReportMetric(each.Seconds(), "cpu-s/op"); each > most {
			b.Errorf("loading took %s", each)
		}
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		if b.ReportMetric(float64(m.Sys>>20), "peak-MiB"); m.Sys > mostMemory {
			b.Errorf("loading used %d MiB", m.Sys>>20)
		}
	}
	for name, write := range map[string]func(*testing.B, string){"file": inFile, "folder": inFolder} {
		b.Run("check-"+name, func(b *testing.B) {
			write(b, "in")
			began := processors()
			for b.Loop() {
				load(b, NewLoader(file, nil))
			}
			report(b, began)
		})
		b.Run("reload-"+name, func(b *testing.B) {
			write(b, "in")
			l := NewLoader(file, nil)
			load(b, l)
			began := processors()
			for n := 0; b.Loop(); n++ {
				b.StopTimer()
				write(b, fmt.Sprint("in-", n))
				b.StartTimer()
				load(b, l)
			}
			report(b, began)
		})
	}
}
