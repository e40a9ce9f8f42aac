package yamlconf

import (
	"reflect"
	"regexp"
	"slices"
	"strings"
)

// environmentFile is the suffix of a variable that names a file.
const environmentFile = "_FILE"

// environment holds the variables with a prefix.
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

// variable returns the name of the variable for the value at p.
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

// fromEnvironment decodes a scalar from its variable, or from the file that the variable names if withFile is true.
// It reports whether a variable is set.
func (d *decoder) fromEnvironment(p Path, withFile bool, v reflect.Value) bool {
	if d.inMap > 0 {
		return false
	}
	name, inFile := d.env.variable(p), ""
	value := d.env.values[name]
	if withFile {
		inFile = d.env.values[name+environmentFile]
	}
	switch {
	case value != "" && inFile != "":
		d.report(p, positionOfVariable(name), "%s is also set: remove one", name+environmentFile)
	case value != "":
		d.set(p, positionOfVariable(name), v, value)
	case inFile != "":
		d.setFromFile(p, positionOfVariable(name+environmentFile), v, inFile)
	default:
		return false
	}
	return true
}

// unknownVariables reports variables that do not set a value of the struct.
func (d *decoder) unknownVariables(t reflect.Type) {
	known, maps := d.env.names(nil, t)
	for _, name := range d.env.unknown(known) {
		advice := Suggest(name, known, "correct its name or remove it")
		inMap := slices.IndexFunc(maps, func(p Path) bool { return strings.HasPrefix(name, d.env.variable(p)+"_") })
		if value, ok := strings.CutSuffix(name, environmentFile); inMap >= 0 {
			advice = "keys below " + maps[inMap].String() +
				" can only be set in the file; a secret can be read from its own file"
		} else if ok && slices.Contains(known, value) {
			advice = "only secrets can be read from files, set " + value
		}
		d.report(nil, positionOfVariable(name), "unknown variable: %s", advice)
	}
}

// names returns the sorted names of the variables for a struct of type t at p. maps has the paths of maps, whose
// values have no variables.
func (env environment) names(p Path, t reflect.Type) (names []string, maps []Path) {
	for _, f := range FieldsOf(t) {
		child := p.Child(f.Tag.Get("yaml"))
		switch {
		case isDefaults(t, f):
			maps = append(maps, child)
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

// unknown returns the names of the variables that are not in known.
func (env environment) unknown(known []string) []string {
	// Kubernetes sets these variables in each container for a Service whose name begins like the prefix. A variable
	// that just ends in _PORT is ignored only if its value is a URL.
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

// positionOfVariable returns the position for problems with a variable.
func positionOfVariable(name string) position {
	return position{source: "environment variable " + name}
}
