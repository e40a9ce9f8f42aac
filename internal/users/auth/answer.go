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
	if err := checkNesting(text); err != nil {
		return nil, fmt.Errorf("%s: %w", source, err)
	}
	var object map[string]any
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	if err := decoder.Decode(&object); err != nil || object["user"] == nil || decoder.More() {
		return nil, fmt.Errorf(`%s: is not a JSON object with the key "user"`, source)
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

// maxDepth limits how deep the values of a response may be nested. The settings of a user need less than half of it.
// Indented as YAML, a deep response would take the square of its size.
const maxDepth = 20

// checkNesting refuses a JSON text that is nested too deep, or in which an object has a key twice: two programs that
// read such a text may take different values. It leaves other errors to the decoder that reads the values.
func checkNesting(text []byte) error {
	var nested []map[string]bool // the keys of each open object so far, nil for an array
	isKey := false
	decoder := json.NewDecoder(bytes.NewReader(text))
	for {
		token, err := decoder.Token()
		if err != nil {
			return nil
		}
		switch token {
		case json.Delim('{'), json.Delim('['):
			var keys map[string]bool
			if token == json.Delim('{') {
				keys = map[string]bool{}
			}
			nested = append(nested, keys)
			if len(nested) > maxDepth {
				return fmt.Errorf("has values nested more than %d levels deep", maxDepth)
			}
		case json.Delim('}'), json.Delim(']'):
			nested = nested[:len(nested)-1]
		default:
			if isKey {
				keys, key := nested[len(nested)-1], token.(string)
				if keys[key] {
					return fmt.Errorf("has the key %q twice in one object", key)
				}
				keys[key] = true
				isKey = false
				continue
			}
		}
		isKey = len(nested) > 0 && nested[len(nested)-1] != nil
	}
}
