package reload

// Keep replaces each value of next with the value that before has under the same key, if both are equal. What a server
// has made of that value then stays in use: clients, connections and what it knows of them.
func Keep[K comparable, V any](next, before map[K]V, equal func(key K, next, before V) bool) {
	for key, v := range next {
		if old, ok := before[key]; ok && equal(key, v, old) {
			next[key] = old
		}
	}
}
