package driver

// WithSmallestPart returns options for an S3 server whose minimum part size is this number of bytes instead of 5 MiB.
func (o Options) WithSmallestPart(bytes int64) *Options {
	o.smallestPart = bytes
	return &o
}
