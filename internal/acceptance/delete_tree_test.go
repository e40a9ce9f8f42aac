package acceptance_test

import (
	"net"
	"strings"
	"testing"

	"github.com/babelftp/babelftp/internal/testkit/must"
	"github.com/babelftp/babelftp/internal/testkit/s3test"
)

// Programs that delete the tree whose path is the last of their arguments: host, port, user, password, path.
const (
	pythonFtplibDelete = `
import ftplib, sys
host, port, user, password, tree = sys.argv[1:]
ftp = ftplib.FTP()
ftp.connect(host, int(port))
ftp.login(user, password)
def delete(path):
    for name, facts in list(ftp.mlsd(path)):
        if facts["type"] == "dir":
            delete(path + "/" + name)
        elif facts["type"] == "file":
            ftp.delete(path + "/" + name)
    ftp.rmd(path)
delete(tree)
`
	// The program makes the tree too, as Net::FTP does it: its first MKD is for the whole path.
	perlMakeAndDelete = `
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
)

// A tree that an S3 tool has made has no markers, so each directory ends with its last file. Programs that
// know nothing of S3 delete such a tree file by file and directory by directory. None of them may fail, and nothing may
// be left.
func TestDeleteTree(t *testing.T) {
	t.Parallel()
	s := newSite(t, s3test.Start(t, "minio"))
	host, port, err := net.SplitHostPort(s.address)
	must.OK(t, err)
	program := func(args ...string) func(t *testing.T, tree string) {
		return func(t *testing.T, tree string) {
			t.Helper()
			launch(t, command(t, args[0]), append(args[1:], host, port, "alice@acme", password, tree)...).succeed()
		}
	}
	files := []string{"top", "a/f", "a/b/g", "a/b/h", "c/d/e/i", "c/j/k", "über/日本/語"}
	for name, deleteTree := range map[string]func(t *testing.T, tree string){
		"python-ftplib":         program("/usr/bin/python3", "-c", pythonFtplibDelete),
		"perl-netftp-and-mkdir": program("perl", "-e", perlMakeAndDelete),
		"lftp": func(t *testing.T, tree string) {
			newLftp(t, s, way{tls: "plain", data: "passive"}).run("rm -r " + lftpQuote(tree))
		},
		"rclone": func(t *testing.T, tree string) {
			newRclone(t, s.connection(t)).run("purge", "acme:"+strings.TrimPrefix(tree, "/"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bucket, tree := s.buckets[acme], "/tree-"+name
			for _, file := range files {
				key := strings.TrimSuffix(prefix, "/") + tree + "/" + file
				s3test.Put(t, s.client, bucket, key, "content")
			}
			deleteTree(t, tree)
			for _, object := range s.objects(t, "") {
				if strings.HasPrefix(object, strings.TrimPrefix(tree, "/")+"/") {
					t.Errorf("%q is left", object)
				}
			}
		})
	}
}
