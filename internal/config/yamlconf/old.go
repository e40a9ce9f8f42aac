package yamlconf

import (
	"cmp"
	"strings"
)

// anyName stands for a key that is a name, in the path of an [OldKey].
const anyName = "*"

// An OldKey is a key that documents have had.
type OldKey struct {
	// Key is the path of the key, with dots between and * for names.
	Key string
	// New is the path of the key in its place. It has the same names. It is empty where there is none.
	New string
	// Advice says what to do where New does not, or not all of it.
	Advice string
}

// advice says what to do about the key that p leads to, if it is this one, and which key is in its place, nil for none.
func (o OldKey) advice(p Path) (advice string, meant Path, ok bool) {
	keys := strings.Split(o.Key, ".")
	if len(keys) != len(p) {
		return "", nil, false
	}
	var names []string
	for i, key := range keys {
		switch key {
		case p[i]:
		case anyName:
			names = append(names, p[i])
		default:
			return "", nil, false
		}
	}
	if o.New == "" {
		return o.Advice, nil, true
	}
	to := Path(strings.Split(o.New, "."))
	for i, key := range to {
		if key == anyName {
			to[i], names = names[0], names[1:]
		}
	}
	return cmp.Or(o.Advice, "this key has moved: write "+to.String()), to, true
}
