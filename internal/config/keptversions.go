package config

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
)

// keptFile is the file below kubernetes.folder with the versions that are in use instead of invalid ones. It contains
// what they refer to, so that they survive a restart, even if a Secret does not exist anymore.
const keptFile = "kept.json"

// A keptID identifies a resource, which is another one after it was deleted and created again.
type keptID struct {
	Kind                 ResourceKind
	Namespace, Name, UID string
}

func keptIDOf(r *Resource) keptID { return keptID{r.Kind, r.Namespace, r.Name, r.UID} }

// A keptVersion is a version in the file.
type keptVersion struct {
	keptID
	Version AcceptedSpec
	Held    *held
}

// readKept returns the kept versions in a folder.
func readKept(folder string) map[keptID]*keptVersion {
	var list []*keptVersion
	text, err := os.ReadFile(filepath.Join(folder, keptFile))
	if err != nil || json.Unmarshal(text, &list) != nil { // there is none, or it is damaged
		return nil
	}
	all := make(map[keptID]*keptVersion, len(list))
	for _, v := range list {
		all[v.keptID] = v
	}
	return all
}

// keep writes the versions that are kept, if they have changed. A failure loses them only with a restart.
func (m *resourceMerger) keep() {
	kept := map[*Resource]*specVersion{}
	for _, states := range []map[resourceKey]*resourceState{m.next.tenants, m.next.users} {
		for _, s := range states {
			if isValid(s.good) && s.good.held != nil && !isValid(s.current) {
				kept[s.resource] = s.good
			}
		}
	}
	if m.next.kept = kept; m.before.files != nil && maps.Equal(kept, m.before.kept) {
		return
	}
	folder := m.cfg.Kubernetes.Folder
	if len(kept) == 0 {
		_ = os.Remove(filepath.Join(folder, keptFile))
		return
	}
	list := make([]keptVersion, 0, len(kept))
	for r, v := range kept {
		list = append(list, keptVersion{keptIDOf(r), *v.spec, v.held})
	}
	if text, err := json.Marshal(list); err == nil && os.MkdirAll(folder, 0o700) == nil {
		_ = replaceFile(folder, filepath.Join(folder, keptFile), text)
	}
}
