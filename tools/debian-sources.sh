#!/bin/sh
# Unpacks what authors of programs publish into .tools/suites/PACKAGE: Debian's copy of it, without Debian's changes, at
# exact versions. apt checks the signatures.
# usage: debian-sources.sh PACKAGE=VERSION...
set -eu

cd "$(dirname "$0")/.."
folder=.tools/suites
missing=''
for pair in "$@"; do
	[ "$(cat "$folder/${pair%%=*}/.version" 2>/dev/null)" = "${pair#*=}" ] || missing="$missing $pair"
done
[ -n "$missing" ] || exit 0

fail() {
	echo "$0: $1" >&2
	exit 1
}

command -v apt-get >/dev/null || fail "there is no apt-get here: the suites need Debian"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
chmod 755 "$work" # for apt's own user
mkdir -p "$work/lists/partial" "$work/cache"

# The places of the packages have the sources too.
if [ -e /etc/apt/sources.list.d/debian.sources ]; then
	list=$work/debian.sources
	sed 's/^Types:.*/Types: deb-src/' /etc/apt/sources.list.d/debian.sources >"$list"
else
	list=$work/sources.list
	sed -n 's/^deb /deb-src /p' /etc/apt/sources.list >"$list"
fi
apt() {
	apt-get -q -o Dir::Etc::sourcelist="$list" -o Dir::Etc::sourceparts=/dev/null -o Dir::State::lists="$work/lists" \
		-o Dir::Cache="$work/cache" "$@" >"$work/log" 2>&1 || fail "apt-get $1 failed: $(cat "$work/log")"
}
apt update
for pair in $missing; do
	package=${pair%%=*}
	(cd "$work" && apt source --download-only --tar-only "$pair")
	rm -rf "${folder:?}/$package"
	mkdir -p "$folder/$package"
	tar -x -f "$(echo "$work/$package"_*.orig.tar.*)" -C "$folder/$package" --strip-components=1
	echo "${pair#*=}" >"$folder/$package/.version"
done
