package view

// The driver's file information has these facts of S3. Its types are Info and Stored of driver/internal/file.

// Tagged is file information with the ETag of the object.
type Tagged interface{ ETag() string }

// Receipt is file information of a file that this session has stored.
type Receipt interface {
	Checksum() string  // that S3 has confirmed
	RequestID() string // of the request that has stored the file
}
