// Package conformance tests the whole server against the text of the standards, mostly with one test file for each
// document. The documents are RFC 2640 and its draft, the two on UTF-8, the draft on non-ASCII URIs, the draft on
// MFMT and MFF, and RFC 2389, 2428, 3659, 4217 and 7151. Rules that tests of other packages cover have no test
// here.
//
// The package contains only tests. They use nothing but the configuration of the server and the bytes on its
// connections: a test contains exactly what it sends and what it expects to receive. docs/conformance.md has a row
// for each rule that does not follow from another one, with the test that covers it. TestTable compares the page
// with the tests.
package conformance
