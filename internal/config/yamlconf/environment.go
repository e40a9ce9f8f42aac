package yamlconf

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// environmentFile ends the name of a variable that names a file.
const environmentFile = "_FILE"

// environment is the variables that begin with prefix.
type environment struct {
	prefix string
	values map[string]string
	users  map[string]Path // which value each variable was looked up for
	all    bool            // look up each value, to know the names of all variables
}

func newEnvironment(environ []string, prefix string) environment {
	env := environment{prefix: prefix, values: map[string]string{}, users: map[string]Path{}}
	for _, v := range environ {
		name, value, _ := strings.Cut(v, "=")
		if prefix != "" && strings.HasPrefix(name, prefix) && value != "" {
			env.values[name] = value
		}
	}
	return env
}

// variable is the name of the variable for the value that p leads to.
func (env environment) variable(p Path) string {
	return env.prefix + strings.Map(func(r rune) rune {
		switch {
		case 'a' <= r && r <= 'z':
			return r - 'a' + 'A'
		case 'A' <= r && r <= 'Z', '0' <= r && r <= '9':
			return r
		}
		return '_'
	}, strings.Join(p, "_"))
}

// below reports whether a variable may give a value below p.
func (env environment) below(p Path) bool {
	if env.all || len(env.values) == 0 || len(p) == 0 {
		return env.all || len(env.values) > 0
	}
	prefix := env.variable(p) + "_"
	for name := range env.values {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return false
}

// A variableValue is what the environment says of a value. The zero value is nothing.
type variableValue struct {
	name, value string
	isFile      bool   // value is the name of a file that holds the value
	conflict    string // why it cannot be used
}

// take looks up the value that p leads to, which may be in a file if withFile says so.
func (env environment) take(p Path, withFile bool) variableValue {
	name := env.variable(p)
	conflict := env.bind(name, p)
	var fileName, inFile string
	if withFile {
		fileName = name + environmentFile
		inFile = env.values[fileName]
		if c := env.bind(fileName, p); c != "" {
			conflict = c
		}
	}
	value := env.values[name]
	switch {
	case value == "" && inFile == "":
		return variableValue{}
	case value != "" && inFile != "":
		return variableValue{name: name, conflict: fmt.Sprintf("%s is set too: remove one", fileName)}
	case inFile != "":
		return variableValue{name: fileName, value: inFile, isFile: true, conflict: conflict}
	}
	return variableValue{name: name, value: value, conflict: conflict}
}

// bind notes that a variable is for the value that p leads to, and says so if it is for another one already.
func (env environment) bind(name string, p Path) string {
	if other, taken := env.users[name]; taken {
		return fmt.Sprintf(
			"the variable could mean %s as well: remove it and write the value into the file, or rename one", other)
	}
	env.users[name] = p
	return ""
}

// unknown is the names of the variables that no value was looked up in.
func (env environment) unknown() []string {
	// What Kubernetes sets in each container for a Service whose name begins like the prefix. A variable that only
	// ends in _PORT has a URL there.
	serviceLink := regexp.MustCompile(
		`_SERVICE_(HOST|PORT(_\w+)?)=|_PORT_\d+_(TCP|UDP|SCTP)_(PROTO|PORT|ADDR)=|_PORT(_\d+_(TCP|UDP|SCTP))?=(tcp|udp|sctp)://`)
	var names []string
	for name, value := range env.values {
		if _, known := env.users[name]; !known && !serviceLink.MatchString(name+"="+value) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// known is the names of the variables that give a value.
func (env environment) known() []string { return slices.Sorted(maps.Keys(env.users)) }

// environmentSource is how a variable is named as the source of a problem.
func environmentSource(name string) string { return "environment variable " + name }
