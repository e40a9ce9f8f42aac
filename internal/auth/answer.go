package auth

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/babelftp/babelftp/internal/config"
	"github.com/babelftp/babelftp/internal/config/yamlconf"
)

// decodeUser decodes what a service says of a user: a JSON object whose key user has the settings, in the form of a configured user
// without a password. The error names source, the keys and what is wrong.
func decodeUser(source string, text []byte) (*config.User, error) {
	var object map[string]any
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	if err := decoder.Decode(&object); err != nil || object["user"] == nil || decoder.More() {
		return nil, fmt.Errorf(`%s: is no JSON object with the key "user"`, source)
	}
	plain, err := json.MarshalIndent(object, "", " ") // what is JSON and no YAML, such as surrogate pairs, is no longer there
	if err != nil {
		return nil, fmt.Errorf("%s: %w", source, err)
	}
	var answer struct {
		User config.User `yaml:"user"`
	}
	positions, problems := yamlconf.Loader{NoFiles: true}.Decode(source, plain, &answer)
	p, u := yamlconf.Path{"user"}, &answer.User
	if positions != nil {
		problems = append(problems, u.Validate(p, positions)...)
	}
	report := func(key, message string) {
		if problem := positions.Problem(p.Child(key), message); problem != nil {
			problems = append(problems, problem)
		}
	}
	if !u.PasswordHash.Empty() {
		report("password_hash", "has no place here: the service compares the password")
	}
	if u.Overwrite != "" {
		report("overwrite", "has no place here: write it in the tenant, because the server checks at its start what the bucket can do")
	}
	if len(problems) > 0 {
		return nil, problems
	}
	return u, nil
}
