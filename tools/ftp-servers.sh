#!/bin/sh
# Unpacks ProFTPD and Pure-FTPd of Debian below .tools/ftp-servers. They cannot be installed beside vsftpd.
set -eu
cd "$(dirname "$0")/.."
[ -d .tools/ftp-servers ] && exit 0
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
apt-get download -q proftpd-core pure-ftpd pure-ftpd-common libmemcached11 libmemcachedutil2 libhashkit2 libhiredis0.14 libpcre2-posix3
cd - >/dev/null
for package in "$dir"/*.deb; do
	dpkg -x "$package" "$dir/root"
done
rm -rf "$dir/root/usr/share"
mv "$dir/root" .tools/ftp-servers
