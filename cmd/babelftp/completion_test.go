package main

import (
	"slices"
	"strings"
	"testing"
)

// TestCompletion requests the completions that a shell offers for Tab.
func TestCompletion(t *testing.T) {
	if _, help, _ := output(t, "", "--help"); !strings.Contains(help, "  completion ") {
		t.Errorf("completion is hidden:\n%s", help)
	}
	for _, tc := range []struct {
		name  string
		words []string
		want  []string // must be among the completions
	}{
		{"commands", []string{"comp"}, []string{"completion"}},
		{"shells", []string{"completion", ""}, []string{"bash", "fish", "powershell", "zsh"}},
		{"subcommands", []string{"users", "i"}, []string{"import"}},
		{"flags", []string{"users", "import", "--str"}, []string{"--strip"}},
		{"settings", []string{"users", "set", "alice", "limits.s"}, []string{"limits.sessions="}},
		{"values", []string{"users", "set", "alice", "permissions=list,r"}, []string{"permissions=list,read", "permissions=list,rename"}},
		{"kinds-of-servers", []string{"users", "import", ""}, []string{"proftpd", "pureftpd", "sftpgo", "vsftpd"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, out, _ := output(t, "", append([]string{"__completeNoDesc"}, tc.words...)...)
			offered := strings.Fields(out)
			for _, want := range tc.want {
				if !slices.Contains(offered, want) {
					t.Errorf("missing %q in the completions %q", want, offered)
				}
			}
		})
	}
}
