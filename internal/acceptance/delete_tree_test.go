package acceptance_test

import (
	"net"
	"strings"
	"testing"

	"github.com/babelftp/babelftp/internal/testkit/must"
	"github.com/babelftp/babelftp/internal/testkit/s3test"
)

// perlMakeAndDelete creates a directory in a tree and deletes the tree. Its arguments are host, port, user,
// password and path. Net::FTP first sends MKD for the whole path, and it fails if a directory to delete is missing.
const perlMakeAndDelete = `
use strict; use Net::FTP;
my ($host, $port, $user, $password, $tree) = @ARGV;
my $ftp = Net::FTP->new($host, Port => $port) or die $@;
$ftp->login($user, $password) or die $ftp->message;
$ftp->mkdir("$tree/pl/q/r", 1) or die $ftp->message;
$ftp->quit;
$ftp = Net::FTP->new($host, Port => $port) or die $@;
$ftp->login($user, $password) or die $ftp->message;
$ftp->rmdir($tree, 1) or die $ftp->message;
`

// A tree created by an S3 tool has no markers, so each directory vanishes with its last file. A program that
// deletes the tree file by file and directory by directory must succeed and leave nothing.
func TestDeleteTree(t *testing.T) {
	t.Parallel()
	s := newSite(t, s3test.Start(t, "minio"))
	host, port, err := net.SplitHostPort(s.address)
	must.OK(t, err)
	for _, file := range []string{"top", "a/f", "a/b/g", "a/b/h", "c/d/e/i", "c/j/k", "über/日本/語"} {
		s3test.Put(t, s.client, s.buckets[acme], prefix+"tree/"+file, "content")
	}
	launch(
		t, command(t, "perl"), "-e", perlMakeAndDelete, host, port, "alice@acme", password, "/tree").succeed()
	for _, object := range s.objects(t, "") {
		if strings.HasPrefix(object, "tree/") {
			t.Errorf("unexpected object %q", object)
		}
	}
}
