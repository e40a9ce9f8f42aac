package auth

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/babelftp/babelftp/internal/config"
	"github.com/babelftp/babelftp/internal/config/yamlconf"
)

// decode decodes the response of a service: a JSON object whose key "user" has the settings of the user, in the form
// of a configured user without a password. The optional key "tenant" names the tenant. Errors name source and the
// invalid keys.
func decode(source string, text []byte) (*Response, error) {
	if err := checkNesting(text); err != nil {
		return nil, fmt.Errorf("%s: %w", source, err)
	}
	var object map[string]any
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	if err := decoder.Decode(&object); err != nil || object["user"] == nil || decoder.More() {
		return nil, fmt.Errorf(`%s: is not a JSON object with the key "user"`, source)
	}
	// Encode the object again, because YAML does not accept all of JSON, for example surrogate pairs.
	plain, err := json.MarshalIndent(object, "", " ")
	if err != nil {
		return nil, fmt.Errorf("%s: %w", source, err)
	}
	var response struct {
		Tenant string      `yaml:"tenant"`
		User   config.User `yaml:"user"`
	}
	positions, problems := yamlconf.Loader{NoFiles: true}.Decode(source, plain, &response)
	if positions != nil {
		problems = append(problems, response.User.Validate(yamlconf.Path{"user"}, positions)...)
	}
	if len(problems) > 0 {
		return nil, problems
	}
	return &Response{Tenant: response.Tenant, User: &response.User}, nil
}

// maxDepth limits the nesting of a response. The settings of a user need less than half of it. Without a limit,
// indenting a deeply nested response could take space that is quadratic in its size.
const maxDepth = 20

// checkNesting rejects JSON that is nested too deeply, or in which an object has a key twice, because two programs
// that read such an object may use different values. Other errors are left to the decoder.
func checkNesting(text []byte) error {
	var nested []map[string]bool // the keys of each open object seen so far, nil for an array
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
					return fmt.Errorf("duplicate key %q", key)
				}
				keys[key] = true
				isKey = false
				continue
			}
		}
		isKey = len(nested) > 0 && nested[len(nested)-1] != nil
	}
}
