package reload

// Keep replaces each value of next with the value that before has under the same key, if equal reports that they are
// equal. What the server has made of the old value stays in use: for example clients, connections and what it has
// learned about them. The tenants of a configuration and the buckets are kept by it.
//
// The function KeepFixed of package server does the opposite. It goes back to the old values where the new ones differ
// and need a restart, so the two share no code.
func Keep[K comparable, V any](next, before map[K]V, equal func(key K, next, before V) bool) {
	for key, v := range next {
		if old, ok := before[key]; ok && equal(key, v, old) {
			next[key] = old
		}
	}
}
