package config

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// BenchmarkManyTenants reads a configuration of 3,000 tenants and 30,000 users, and again after a change of one
// tenant. Each may take 3 s of processors, and the process 250 MiB:
//
//	go test ./internal/config -run - -bench ManyTenants -benchtime 3x
func BenchmarkManyTenants(b *testing.B) {
	const (
		tenants, users = 3000, 10
		most           = 3 * time.Second
		mostMemory     = 250 << 20
	)
	file := filepath.Join(b.TempDir(), "babelftp.yaml")
	write := func(prefix string) {
		b.Helper()
		f, err := os.Create(file)
		if err != nil {
			b.Fatal(err)
		}
		defer f.Close()
		fmt.Fprintln(f, "tenants:")
		for i := range tenants {
			fmt.Fprintf(f, "  t%d:\n    hosts: [t%[1]d.example.com]\n    bucket: data-%[1]d\n", i)
			fmt.Fprintf(f, "    prefix: %s/\n    users:\n", prefix)
			for j := range users {
				fmt.Fprintf(f, "      u%d-%d:\n        password_hash: %q\n        home: /h\n", i, j, hash)
				fmt.Fprintln(f, "        permissions: [list, read]")
			}
			prefix = "in"
		}
	}
	load := func(b *testing.B, l *Loader) {
		b.Helper()
		if _, err := l.Load(); err != nil {
			b.Fatal(err)
		}
	}
	processors := func() time.Duration { // used so far
		var u unix.Rusage
		if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
			b.Fatal(err)
		}
		return time.Duration(u.Utime.Nano() + u.Stime.Nano())
	}
	report := func(b *testing.B, began time.Duration) {
		b.Helper()
		each := (processors() - began) / time.Duration(b.N)
		if b.ReportMetric(each.Seconds(), "cpu-s/op"); each > most {
			b.Errorf("it took %s", each)
		}
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		if b.ReportMetric(float64(m.Sys>>20), "peak-MiB"); m.Sys > mostMemory {
			b.Errorf("it took %d MiB", m.Sys>>20)
		}
	}
	b.Run("check", func(b *testing.B) {
		write("in")
		began := processors()
		for b.Loop() {
			load(b, NewLoader(file, nil))
		}
		report(b, began)
	})
	b.Run("reload", func(b *testing.B) {
		write("in")
		l := NewLoader(file, nil)
		load(b, l)
		began := processors()
		for n := 0; b.Loop(); n++ {
			b.StopTimer()
			write(fmt.Sprint("in-", n))
			b.StartTimer()
			load(b, l)
		}
		report(b, began)
	})
}
