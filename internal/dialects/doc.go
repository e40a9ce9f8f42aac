// Package dialects runs the same forty FTP steps through a proxy that changes the requests and responses of an S3
// server, once for each dialect of S3 that someone has reported.
//
// The package contains only tests. A dialect is one row of the table in table_test.go: its name, who reported it,
// what the proxy changes, and the expected outcome. Either all steps work, or the row names the failing steps and
// the log message.
//
// In every dialect, a step that succeeds has transferred the right bytes, a listing without an error shows each
// file once with its size, acknowledged files are in the bucket at the end, and the log contains the reason for
// each failed step.
package dialects
