package yamlconf

import "strings"

// anyName stands for a key that is a name, in the path of an [OldKey].
const anyName = "*"

// An OldKey is a key that documents have had.
type OldKey struct {
	// Key is the path of the key, with dots between and * for names.
	Key string
	// New is the path of the key in its place. It has the same names. It is empty where there is none.
	New string
	// Advice says what to do where New is empty.
	Advice string
}

// advice says what to do about the key that p leads to, if it is this one.
func (o OldKey) advice(p Path) (string, bool) {
	keys := strings.Split(o.Key, ".")
	if len(keys) != len(p) {
		return "", false
	}
	var names []string
	for i, key := range keys {
		switch key {
		case p[i]:
		case anyName:
			names = append(names, p[i])
		default:
			return "", false
		}
	}
	if o.New == "" {
		return o.Advice, true
	}
	to := Path(strings.Split(o.New, "."))
	for i, key := range to {
		if key == anyName {
			to[i], names = names[0], names[1:]
		}
	}
	return "this key has moved: write " + to.String(), true
}
