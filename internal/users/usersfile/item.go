package usersfile

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"strings"

	"github.com/babelftp/babelftp/internal/config"
)

// ItemsPrefix is the prefix of the items with users in the shared state. The item of a user contains a users_file with
// this user only. If the user is removed, an item without a user stays, so that an old version of the item cannot be
// put back.
const ItemsPrefix = "users/"

// TenantPrefix returns the prefix of the items of a tenant.
func TenantPrefix(tenant string) string { return ItemsPrefix + tenant + "/" }

// maxItemName limits the encoded names. Some S3 servers store objects in files, whose names have at most 255 bytes.
const maxItemName = 200

// itemName returns the name of the item of a user. User names may contain any character and be long.
func itemName(tenant, user string) string {
	user = config.NormalizeUser(user)
	encoded := base64.RawURLEncoding.EncodeToString([]byte(user))
	if len(encoded) > maxItemName {
		sum := sha256.Sum256([]byte(user))
		encoded = "sha256." + hex.EncodeToString(sum[:])
	}
	return TenantPrefix(tenant) + encoded
}

// An Item is a user in the shared state.
type Item struct {
	Tenant string
	Name   string // normalized
	Text   []byte // a users_file with this user only
}

// ParseItem parses an item of the shared state. ok is false if the item has no user, because it was removed. The name
// of an item that cannot be parsed is taken from the name of the item.
func ParseItem(item string, value []byte) (i Item, ok bool) {
	tenant, encoded, ok := strings.Cut(strings.TrimPrefix(item, ItemsPrefix), "/")
	if !ok || value == nil {
		return Item{}, false
	}
	i = Item{Tenant: tenant, Text: value}
	d, err := Parse(value)
	if err == nil {
		names := d.Names()
		if len(names) == 0 {
			return Item{}, false
		}
		if len(names) == 1 && itemName(tenant, names[0]) == item {
			i.Name = names[0]
			return i, true
		}
	}
	name, err := base64.RawURLEncoding.DecodeString(encoded)
	if err != nil {
		name = []byte(encoded)
	}
	i.Name, i.Text = string(name), nil
	return i, true
}
