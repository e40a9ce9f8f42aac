package acceptance_test

import (
	"net"
	"path/filepath"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/s3"

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
	pythonFtputilDelete = `
import ftplib, ftputil, ftputil.session, sys
host, port, user, password, tree = sys.argv[1:]
factory = ftputil.session.session_factory(base_class=ftplib.FTP, port=int(port), encoding="UTF-8")
with ftputil.FTPHost(host, user, password, session_factory=factory) as ftp:
    ftp.rmtree(tree)
`
	perlDelete = `
use strict; use Net::FTP;
my ($host, $port, $user, $password, $tree) = @ARGV;
my $ftp = Net::FTP->new($host, Port => $port) or die $@;
$ftp->login($user, $password) or die $ftp->message;
$ftp->rmdir($tree, 1) or die $ftp->message;
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
	nodeDelete = `
const { Client } = require("basic-ftp");
const [host, port, user, password, tree] = process.argv.slice(1);
(async () => {
	const ftp = new Client();
	try {
		await ftp.access({ host, port: Number(port), user, password });
		await ftp.removeDir(tree);
		console.log(await ftp.pwd());
	} finally {
		ftp.close();
	}
})().catch(error => { console.error(error); process.exit(1); });
`
	rubyDelete = `
require "net/ftp"
host, port, user, password, tree = ARGV
ftp = Net::FTP.new
ftp.connect(host, port.to_i)
ftp.login(user, password)
delete = lambda do |dir|
  ftp.chdir(dir)
  ftp.mlsd.each do |entry|
    next if entry.facts["type"] =~ /[cp]dir/
    entry.directory? ? delete.call(entry.pathname) : ftp.delete(entry.pathname)
  end
  ftp.chdir("..")
  ftp.rmdir(dir)
end
delete.call(tree)
`
)

// A tree that an S3 tool has made has no markers, so each directory ends with its last file. Programs in several
// languages, and scripts that know nothing of S3, delete such a tree file by file and directory by directory. None of
// them may fail, and nothing may be left.
func TestDeleteTree(t *testing.T) {
	t.Parallel()
	s := newSite(t, s3test.Start(t, "minio"))
	host, port, err := net.SplitHostPort(s.address)
	if err != nil {
		t.Fatal(err)
	}
	modules, err := filepath.Abs("../../.tools/clients/node_modules")
	if err != nil {
		t.Fatal(err)
	}
	program := func(args ...string) func(t *testing.T, tree string) {
		return func(t *testing.T, tree string) {
			t.Helper()
			name := args[0]
			if name == "node" { // launch gives its processes no other environment
				args = append([]string{"env", "NODE_PATH=" + modules, command(t, name)}, args[1:]...)
				name = "env"
			}
			launch(t, command(t, name), append(args[1:], host, port, "alice@acme", password, tree)...).succeed()
		}
	}
	files := []string{"top", "a/f", "a/b/g", "a/b/h", "c/d/e/i", "c/j/k", "über/日本/語"}
	for name, deleteTree := range map[string]func(t *testing.T, tree string){
		"python-ftplib":         program("/usr/bin/python3", "-c", pythonFtplibDelete),
		"python-ftputil":        program("/usr/bin/python3", "-c", pythonFtputilDelete),
		"perl-netftp":           program("perl", "-e", perlDelete),
		"perl-netftp-and-mkdir": program("perl", "-e", perlMakeAndDelete),
		"node-basic-ftp":        program("node", "-e", nodeDelete),
		"ruby-netftp":           program("ruby", "-e", rubyDelete),
		"lftp": func(t *testing.T, tree string) {
			newLftp(t, s, way{tls: "plain", data: "passive"}).run("rm -r " + lftpQuote(tree))
		},
		"rclone": func(t *testing.T, tree string) {
			newRclone(t, s).run("purge", "acme:"+strings.TrimPrefix(tree, "/"))
		},
		"curl": func(t *testing.T, tree string) {
			config := []string{"user = " + curlQuote("alice@acme:"+password), "silent", "show-error", "list-only",
				"output = /dev/null",
				"url = " + curlQuote("ftp://"+s.address+"/")}
			for _, line := range []string{
				"DELE top", "DELE a/b/g", "DELE a/b/h", "DELE a/f", "RMD a/b", "RMD a", "DELE c/d/e/i", "DELE c/j/k",
				"RMD c/d/e", "RMD c/d", "RMD c/j", "RMD c",
				"DELE über/日本/語", "RMD über/日本", "RMD über",
			} {
				verb, file, _ := strings.Cut(line, " ")
				config = append(config, "quote = "+curlQuote(verb+" "+tree+"/"+file))
			}
			config = append(config, "quote = "+curlQuote("RMD "+tree))
			launchWith(t, strings.Join(config, "\n")+"\n", command(t, "curl"), "--config", "-").succeed()
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bucket, tree := s.buckets[acme], "/tree-"+name
			for _, file := range files {
				key := strings.TrimSuffix(prefix, "/") + tree + "/" + file
				_, err := s.client.PutObject(
					t.Context(), &s3.PutObjectInput{Bucket: &bucket, Key: &key, Body: strings.NewReader("content")})
				if err != nil {
					t.Fatal(err)
				}
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

// curlQuote writes a value as curl's configuration takes it.
func curlQuote(value string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(value) + `"`
}
