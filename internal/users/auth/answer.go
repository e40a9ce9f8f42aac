package auth

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/babelftp/babelftp/internal/config"
	"github.com/babelftp/babelftp/internal/config/yamlconf"
)

// decode decodes what a service says of a user: a JSON object whose key user has the settings, in the form of a
// configured user without a password. Its key tenant may name the tenant. The error names source, the keys and what is
// wrong.
func decode(source string, text []byte) (*Answer, error) {
	if depth(text) > maxDepth {
		return nil, fmt.Errorf("%s: has values in more than %d others", source, maxDepth)
	}
	var object map[string]any
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	if err := decoder.Decode(&object); err != nil || object["user"] == nil || decoder.More() {
		return nil, fmt.Errorf(`%s: is no JSON object with the key "user"`, source)
	}
	// what is JSON and no YAML, such as surrogate pairs, is no longer there
	plain, err := json.MarshalIndent(object, "", " ")
	if err != nil {
		return nil, fmt.Errorf("%s: %w", source, err)
	}
	var answer struct {
		Tenant string      `yaml:"tenant"`
		User   config.User `yaml:"user"`
	}
	positions, problems := yamlconf.Loader{NoFiles: true}.Decode(source, plain, &answer)
	if positions != nil {
		problems = append(problems, answer.User.Validate(yamlconf.Path{"user"}, positions)...)
	}
	if len(problems) > 0 {
		return nil, problems
	}
	return &Answer{Tenant: answer.Tenant, User: &answer.User}, nil
}

// maxDepth is how many values of an answer may be within each other. The settings of a user have less than half of
// that. Indented as YAML, a deep answer would have the square of its size.
const maxDepth = 20

// depth is how many objects and arrays of a JSON text are within each other.
func depth(text []byte) (most int) {
	now, quoted, escaped := 0, false, false
	for _, b := range text {
		switch {
		case escaped:
			escaped = false
		case quoted && b == '\\':
			escaped = true
		case b == '"':
			quoted = !quoted
		case quoted:
		case b == '{', b == '[':
			now++
			most = max(most, now)
		case b == '}', b == ']':
			now--
		}
	}
	return most
}
