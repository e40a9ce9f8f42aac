package config

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// BenchmarkManyTenants reads a configuration of 3,000 tenants and 30,000 users, and again after a change of one
// tenant. Each may take 3 s on two processors. To see the memory of the process too, which may be 250 MiB:
//
//	go test ./internal/config -run - -bench ManyTenants -benchtime 3x -benchmem -o config.test
//	/usr/bin/time -v ./config.test -test.run - -test.bench ManyTenants -test.benchtime 3x
func BenchmarkManyTenants(b *testing.B) {
	const tenants, users = 3000, 10
	var text strings.Builder
	text.WriteString("tenants:\n")
	for i := range tenants {
		fmt.Fprintf(&text, "  t%d:\n    hosts: [t%[1]d.example.com]\n    bucket: data-%[1]d\n    prefix: in/\n    users:\n", i)
		for j := range users {
			fmt.Fprintf(
				&text, "      u%d-%d:\n        password_hash: %q\n        home: /h\n        permissions: [list, read]\n", i,
				j, hash)
		}
	}
	file := filepath.Join(b.TempDir(), "babelftp.yaml")
	write := func(text string) {
		b.Helper()
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			b.Fatal(err)
		}
	}
	load := func(l *Loader) {
		b.Helper()
		if _, err := l.Load(); err != nil {
			b.Fatal(err)
		}
	}
	b.Run("check", func(b *testing.B) {
		write(text.String())
		for b.Loop() {
			load(NewLoader(file, nil))
		}
	})
	b.Run("reload", func(b *testing.B) {
		write(text.String())
		l := NewLoader(file, nil)
		load(l)
		for n := 0; b.Loop(); n++ {
			b.StopTimer()
			write(strings.Replace(text.String(), "prefix: in/", fmt.Sprintf("prefix: in-%d/", n), 1))
			b.StartTimer()
			load(l)
		}
	})
}
