package driver

// For the tests that share the names of package drivertest, which imports this one.

const MaxKeyBytes = maxKeyBytes

type Keyspace string

func (k Keyspace) Key(name string) (string, error) { return keyspace(k).key(name) }
func (k Keyspace) Name(key string) (string, bool)  { return keyspace(k).name(key) }
func (k Keyspace) Directory(key string) string     { return keyspace(k).directory(key) }

// WithSmallestPart returns options for an S3 server that takes parts of so many bytes, where S3 wants 5 MiB.
func (o Options) WithSmallestPart(bytes int64) *Options {
	o.smallestPart = bytes
	return &o
}
