#!/bin/sh
# Installs the Debian packages of commands, and of modules of Perl, that are missing.
# usage: debian-packages.sh COMMAND=PACKAGE[,PACKAGE...]... perl:MODULE=PACKAGE[,PACKAGE...]...
set -eu

has() {
	case $1 in
	perl:*) perl "-M${1#perl:}" -e 1 ;;
	*) PATH=$PATH:/usr/sbin command -v "$1" ;;
	esac >/dev/null 2>&1
}

commands='' packages=''
for pair in "$@"; do
	command=${pair%%=*}
	if ! has "$command"; then
		commands="$commands $command"
		packages="$packages $(echo "${pair#*=}" | tr , ' ')"
	fi
done
[ -n "$packages" ] || exit 0

fail() {
	echo "$0: missing:$commands; $1" >&2
	exit 1
}

command -v apt-get >/dev/null || fail "there is no apt-get here, install them by hand"
as_root=''
if [ "$(id -u)" -ne 0 ]; then
	command -v sudo >/dev/null || fail "run as root or with sudo: apt-get install$packages"
	as_root=sudo
fi
# Tests run services of their own, so no package starts its service: https://people.debian.org/~hmh/invokerc.d-policyrc.d-specification.txt
policy=/usr/sbin/policy-rc.d
if ! [ -e $policy ]; then
	trap '$as_root rm -f $policy' EXIT
	printf '#!/bin/sh\nexit 101\n' | $as_root tee $policy >/dev/null
	$as_root chmod 755 $policy
fi
$as_root apt-get update -q || fail "apt-get update failed"
# shellcheck disable=SC2086 # one word a package
$as_root env DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends $packages ||
	fail "apt-get install$packages failed"
