#!/bin/sh
# Unpacks FTP servers of Debian into .tools/ftp-servers, with the libraries that they need. As installed packages they
# conflict with each other.
# usage: ftp-servers.sh
set -eu

cd "$(dirname "$0")/.."
packages='vsftpd proftpd-core proftpd-mod-crypto pure-ftpd pure-ftpd-common'
folder=.tools/ftp-servers
[ -e $folder/complete ] && exit 0

fail() {
	echo "$0: $1" >&2
	exit 1
}

command -v apt-get >/dev/null || fail "there is no apt-get here: the tests of migrations need Debian"
download=$(mktemp -d)
trap 'rm -rf "$download"' EXIT
chmod 755 "$download" # for apt's own user

# A simulated installation of each names the libraries that are missing.
libraries() {
	for package in $packages; do
		apt-get install -q -s --no-install-recommends "$package" | sed -n 's/^Inst \(lib[^ ]*\) .*/\1/p'
	done | sort -u
}
# shellcheck disable=SC2086,SC2046 # one word a package
fetch() { (cd "$download" && apt-get download -q $packages $(libraries)) >"$download/log" 2>&1; }
if ! fetch; then
	as_root=''
	[ "$(id -u)" -eq 0 ] || as_root=sudo
	$as_root apt-get update -q || fail "apt-get update failed"
	fetch || fail "apt-get download failed: $(cat "$download/log")"
fi
rm -rf $folder
mkdir -p $folder
for package in "$download"/*.deb; do
	dpkg-deb -x "$package" $folder
done
rm -rf $folder/usr/share
touch $folder/complete
