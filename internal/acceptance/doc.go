// Package acceptance tests the program as its users have it: the built binary on real S3 servers. TestClients lets
// FTP clients do what people do with them; make clients runs all of them. After each step the tests look at the
// bucket by an S3 client.
//
// It holds tests only. They need Linux and the Debian packages that make test and make clients install; where one is
// missing the tests fail. The binary is built once for each test process, with the race detector if the tests are (make
// race), and a test in which it reported a race or a panic fails.
package acceptance
