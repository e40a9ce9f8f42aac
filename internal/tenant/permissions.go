package tenant

import (
	"slices"

	"github.com/babelftp/babelftp/internal/config"
	"github.com/babelftp/babelftp/internal/vfs"
)

// layerOf is the layer of a policy that a configuration describes: nil stands for all permissions.
func layerOf(everywhere []config.Permission, byPattern map[string][]config.Permission) vfs.Layer {
	if everywhere == nil {
		everywhere = config.AllPermissions()
	}
	rights := make(map[string]vfs.Rights, len(byPattern))
	for pattern, permissions := range byPattern {
		rights[pattern] = rightsOf(permissions)
	}
	return vfs.NewLayer(rightsOf(everywhere), rights)
}

func rightsOf(permissions []config.Permission) vfs.Rights {
	has := func(p config.Permission) bool { return slices.Contains(permissions, p) }
	return vfs.Rights{
		List: has(config.List), Read: has(config.Read), Write: has(config.Write),
		Delete: has(config.Delete), Rename: has(config.Rename), Mkdir: has(config.Mkdir),
	}
}
