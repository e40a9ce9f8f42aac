package acceptance_test

import (
	"maps"
	"slices"
	"strings"
)

// reasons explain why a client cannot perform tasks, by task name.
type reasons map[string]string

// lacking returns one reason for several tasks.
func lacking(reason string, names ...string) reasons { return reasons{}.and(reason, names...) }

// lackingAllBut returns one reason for all tasks except the named ones.
func lackingAllBut(reason string, names ...string) reasons {
	r := reasons{}
	for _, k := range tasks() {
		if !slices.Contains(names, k.name) {
			r[k.name] = reason
		}
	}
	return r
}

// and adds a reason for more tasks. A task keeps its first reason.
func (r reasons) and(reason string, names ...string) reasons {
	all := maps.Clone(r)
	for _, name := range names {
		if all[name] == "" {
			all[name] = reason
		}
	}
	return all
}

// withTLS lists the tasks that use TLS.
var withTLS = []string{"active TLS", "explicit", "implicit", "TLS 1.2", "TLS 1.3"}

// commands runs programs one after another until one fails.
func commands(lines ...[]string) invocation {
	var quoted []string
	for _, line := range lines {
		quoted = append(quoted, shellLine(line))
	}
	return invocation{args: []string{"sh", "-c", strings.Join(quoted, " && ")}}
}

// shellLine quotes a command line for sh.
func shellLine(words []string) string {
	quoted := make([]string, len(words))
	for i, word := range words {
		quoted[i] = "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
	}
	return strings.Join(quoted, " ")
}

// pairwise calls a function for each pair of names.
func pairwise(names []string, do func(from, to string)) {
	for i := 0; i+1 < len(names); i += 2 {
		do(names[i], names[i+1])
	}
}
