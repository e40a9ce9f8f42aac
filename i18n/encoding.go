package i18n

// An Encoding is how a client writes pathnames.
type Encoding struct{}
