package s3test

// Limit names something that S3 allows and a server may not do.
type Limit string

const (
	// FileBesideDirectory is an object "a" beside an object "a/b".
	FileBesideDirectory Limit = "file-beside-directory"
)

// Limits is what a server cannot do, and why.
type Limits map[Limit]string

// Cannot tells whether the server has a limit, and the reason.
func (l Limits) Cannot(limit Limit) (reason string, yes bool) {
	reason, yes = l[limit]
	return reason, yes
}

func fileSystemLimits() Limits { return Limits{} }
func minioLimits() Limits      { return Limits{} }
