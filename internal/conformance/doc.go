// Package conformance tests the whole server by the text of each document, with a file of tests for most. The
// documents are RFC 2640 and its draft, the two on UTF-8, the draft on non-ASCII URIs, the draft on MFMT and MFF, and
// RFC 2389, 2428, 3659, 4217 and 7151. A rule that the test of another package shows has no test here.
//
// It holds tests only. They know the configuration of the server and the bytes on its connections, and nothing else.
// A test writes what it sends, and what must come back, byte by byte. docs/conformance.md has a row for each rule of
// the documents that does not follow from another, with the test that shows it. TestTable compares the two.
package conformance
