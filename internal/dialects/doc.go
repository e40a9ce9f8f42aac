// Package dialects runs the same forty FTP steps through a proxy that changes what an S3 server says, once for each
// dialect of S3 that someone has reported.
//
// It holds tests only. A dialect is one row of the table in table_test.go: its name, who has reported it, what the
// proxy changes, and what must happen. Either all steps work, or the row names those that fail and what the log says.
//
// Whatever a row says, a step that succeeds has transferred the right bytes, a listing without an error shows each
// file once with its size, what was acknowledged is in the bucket at the end, and the log says why a step has failed.
package dialects
