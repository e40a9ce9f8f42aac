# Uploads files with Perl's Net::FTP under TLS, and downloads each to a file named like it with ".back" behind.
#
# usage: explicit|implicit PORT CERTIFICATES TLS-VERSION USER PASSWORD [LOCAL REMOTE]...

use strict;
use warnings;
use Net::FTP;

my ($mode, $port, $certificates, $version, $user, $password, @files) = @ARGV;
my $implicit = $mode eq "implicit";
my $ftp = Net::FTP->new(
    "127.0.0.1",
    Port        => $port,
    Passive     => 1,
    SSL         => $implicit,
    SSL_ca_file => $certificates,
    SSL_version => { "1.2" => "TLSv1_2", "1.3" => "TLSv1_3" }->{$version},
) or die "connect: $@";

sub check {
    my ($done, $what) = @_;
    die "$what: " . $ftp->code . " " . $ftp->message unless $done;
}

check($ftp->starttls, "starttls") unless $implicit;
check($ftp->login($user, $password), "login");
check($ftp->binary, "binary");
while (my ($local, $remote) = splice(@files, 0, 2)) {
    check($ftp->put($local, $remote), "put $remote");
    check($ftp->get($remote, "$local.back"), "get $remote");
}
$ftp->quit;
