package inspect

// Exported for the tests, which are in another package because package servicetest imports this one.
const (
	BufferSize  = bufferSize
	MaxResponse = maxResponse
)

// ErrEarly is errEarly.
var ErrEarly = errEarly

// ReadHead is readHead.
var ReadHead = readHead
