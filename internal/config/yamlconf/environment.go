package yamlconf

import (
	"fmt"
	"reflect"
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
}

func newEnvironment(environ []string, prefix string) environment {
	env := environment{prefix: prefix, values: map[string]string{}}
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

// A variableValue is what the environment says of a value. The zero value is nothing.
type variableValue struct {
	name, value string
	isFile      bool   // value is the name of a file that holds the value
	conflict    string // why it cannot be used
}

// take looks up the value that p leads to, which may be in a file if withFile says so.
func (env environment) take(p Path, withFile bool) variableValue {
	name := env.variable(p)
	value := env.values[name]
	if inFile := env.values[name+environmentFile]; withFile && inFile != "" {
		if value != "" {
			return variableValue{
				name: name, conflict: fmt.Sprintf("%s is set too: remove one", name+environmentFile),
			}
		}
		return variableValue{name: name + environmentFile, value: inFile, isFile: true}
	}
	if value == "" {
		return variableValue{}
	}
	return variableValue{name: name, value: value}
}

// names are the variables that give values of a struct of type t, to which p leads, sorted. maps are the paths of what
// holds keys that are names, for whose values there are no variables.
func (env environment) names(p Path, t reflect.Type) (names []string, maps []Path) {
	for _, f := range fieldsOf(t) {
		child := p.Child(f.Tag.Get("yaml"))
		switch {
		case IsScalar(f.Type) && HasFileForm(f):
			names = append(names, env.variable(child), env.variable(child)+environmentFile)
		case IsScalar(f.Type) || f.Type == reflect.TypeFor[OneOrMore]():
			names = append(names, env.variable(child))
		case f.Type.Kind() == reflect.Struct:
			inner, innerMaps := env.names(child, f.Type)
			names, maps = append(names, inner...), append(maps, innerMaps...)
		case f.Type.Kind() == reflect.Map:
			maps = append(maps, child)
		}
	}
	slices.Sort(names)
	return names, maps
}

// unknown is the names of the variables that are none of known.
func (env environment) unknown(known []string) []string {
	// What Kubernetes sets in each container for a Service whose name begins like the prefix. A variable that only
	// ends in _PORT has a URL there.
	serviceLink := regexp.MustCompile(
		`_SERVICE_(HOST|PORT(_\w+)?)=|_PORT_\d+_(TCP|UDP|SCTP)_(PROTO|PORT|ADDR)=|_PORT(_\d+_(TCP|UDP|SCTP))?=(tcp|udp|sctp)://`)
	var names []string
	for name, value := range env.values {
		if !slices.Contains(known, name) && !serviceLink.MatchString(name+"="+value) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// environmentSource is how a variable is named as the source of a problem.
func environmentSource(name string) string { return "environment variable " + name }
