package reload

// Keep replaces each value of next with the value for the same key in before, if equal returns true for the two. The
// server then continues to use what belongs to the old value, for example clients, connections and cached information.
// Keep is used for tenants and buckets when the configuration is reloaded.
//
// KeepFixed of package server is for the opposite case: it restores old values that differ but need a restart.
func Keep[K comparable, V any](next, before map[K]V, equal func(key K, next, before V) bool) {
	for key, v := range next {
		if old, ok := before[key]; ok && equal(key, v, old) {
			next[key] = old
		}
	}
}
