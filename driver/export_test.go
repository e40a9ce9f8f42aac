package driver

// WithSmallestPart returns options for an S3 server that takes parts of so many bytes, where S3 wants 5 MiB.
func (o Options) WithSmallestPart(bytes int64) *Options {
	o.smallestPart = bytes
	return &o
}
