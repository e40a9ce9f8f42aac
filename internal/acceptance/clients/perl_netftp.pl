# Does what a verb says with Perl's Net::FTP. TestClients explains the verbs and the environment.

use strict;
use warnings;
use Net::FTP;

my ($verb, @names) = @ARGV;
my ($tls, $version) = @ENV{qw(FTP_TLS FTP_TLS_VERSION)};
my $ftp = Net::FTP->new(
    $ENV{FTP_HOST},
    Port        => $ENV{FTP_PORT},
    Timeout     => 60,
    Passive     => $ENV{FTP_DATA} eq "passive",
    SSL         => $tls eq "implicit",
    SSL_ca_file => $ENV{FTP_CA},
    $version ? (SSL_version => { "1.2" => "TLSv1_2", "1.3" => "TLSv1_3" }->{$version}) : (),
) or die "connect: $@";

sub check {
    my ($done, $what) = @_;
    die "$what: " . $ftp->code . " " . $ftp->message unless $done;
}

check($ftp->starttls, "starttls") if $tls eq "explicit";
check(scalar $ftp->login($ENV{FTP_USER}, $ENV{FTP_PASSWORD}), "login");
check($verb =~ /-text$/ ? $ftp->ascii : $ftp->binary, "type");    # Net::FTP takes TYPE A for the default, and this server begins in TYPE I

if ($verb eq "list") {
    my $listed = $ftp->ls($names[0]);
    check($listed, "ls");
    print map { s{.*/}{}r . "\n" } @$listed;
} elsif ($verb =~ /^(upload|abort)/) {
    while (my ($local, $remote) = splice(@names, 0, 2)) {
        check(scalar $ftp->put($local, $remote), "put $remote");
    }
} elsif ($verb =~ /^download/) {
    while (my ($remote, $local) = splice(@names, 0, 2)) {
        check(scalar $ftp->get($remote, $local), "get $remote");
    }
} elsif ($verb eq "resume-upload") {
    my ($local, $remote) = @names;
    my $size = $ftp->size($remote);
    check(defined $size, "size $remote");
    open(my $file, "<:raw", $local) or die "$local: $!";
    seek($file, $size, 0);
    check(scalar $ftp->append($file, $remote), "append $remote");
} elsif ($verb eq "resume-download") {
    my ($remote, $local) = @names;
    check(scalar $ftp->get($remote, $local, -s $local), "get $remote");
} elsif ($verb eq "get-time") {
    my ($remote, $local) = @names;
    my $time = $ftp->mdtm($remote);
    check($time && $ftp->get($remote, $local), "get $remote");
    utime($time, $time, $local);
} elsif ($verb eq "rename") {
    check(scalar $ftp->rename(@names), "rename");
} elsif ($verb eq "delete") {
    check(scalar $ftp->delete($_), "delete $_") for @names;
} elsif ($verb eq "mkdir") {
    check(scalar $ftp->mkdir($_), "mkdir $_") for @names;
} elsif ($verb eq "rmdir") {
    check(scalar $ftp->rmdir($_), "rmdir $_") for @names;
} else {
    die "no verb is called $verb";
}
$ftp->quit;
