package inspect

// These are for the tests, whose inspectors come from a package that imports this one.
const (
	BufferSize = bufferSize
	MaxAnswer  = maxAnswer
)

// ErrEarly is errEarly.
var ErrEarly = errEarly

// ReadHead is readHead.
var ReadHead = readHead
