// Package conformance asks the whole server what the documents ask of it: RFC 2640 and the draft it comes from, the two UTF-8
// documents, the draft on non-ASCII URIs, and RFC 2389, 2428, 3659, 4217, 7151 and the draft on MFMT and MFF, with a file of tests
// for each.
//
// It holds tests only. They know nothing of the server but its configuration and the bytes on its connections: what is sent is
// written byte by byte as it goes over the wire, and so is what has to come back. docs/conformance.md has a row for each rule of
// the documents, with the test that shows it; TestTable holds the two together.
package conformance
