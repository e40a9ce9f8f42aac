// Package acceptance tests the built program with real S3 servers and real FTP clients. TestClients performs
// typical tasks with many clients; make clients runs all of them. After each step the tests check the bucket with
// an S3 client.
//
// The package contains only tests. They need Linux and the Debian packages that make test and make clients install,
// and they fail if a package is missing. The binary is built once for each test process. With make race it includes
// the race detector, and a test fails if the binary reports a race or a panic.
package acceptance
