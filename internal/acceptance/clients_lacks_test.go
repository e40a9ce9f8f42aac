package acceptance_test

import (
	"maps"
	"slices"
	"strings"
)

// reasons say why a client lacks tasks, by their names.
type reasons map[string]string

// lacking gives one reason for some tasks.
func lacking(reason string, names ...string) reasons { return reasons{}.and(reason, names...) }

// lackingAllBut gives one reason for all tasks but some.
func lackingAllBut(reason string, names ...string) reasons {
	r := reasons{}
	for _, k := range tasks() {
		if !slices.Contains(names, k.name) {
			r[k.name] = reason
		}
	}
	return r
}

// and gives another reason for more tasks. The first reason for a task stays.
func (r reasons) and(reason string, names ...string) reasons {
	all := maps.Clone(r)
	for _, name := range names {
		if all[name] == "" {
			all[name] = reason
		}
	}
	return all
}

// withTLS are the tasks under TLS.
var withTLS = []string{"active TLS", "explicit", "implicit", "TLS 1.2", "TLS 1.3"}

// commands runs programs one after the other, until one fails.
func commands(lines ...[]string) invocation {
	var quoted []string
	for _, line := range lines {
		quoted = append(quoted, shellLine(line))
	}
	return invocation{args: []string{"sh", "-c", strings.Join(quoted, " && ")}}
}

// shellLine writes a command line as sh reads it.
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
