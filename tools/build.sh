#!/bin/sh
# Puts the tool NAME into .tools/bin, built from the versions in tools/NAME.mod, or from PACKAGE@VERSION with the versions in its own go.mod. A cache
# outside of the repository keeps each build, so that another clone or branch with the same versions takes it from there.
# usage: build.sh NAME [PACKAGE@VERSION]
# LDFLAGS is for the linker, such as a version.
set -eu
name=$1 package=${2-}
cache=${XDG_CACHE_HOME:-$HOME/.cache}/babelftp-tools
versions() { if [ "$package" ]; then echo "$package"; else cat "tools/$name.mod" "tools/$name.sum"; fi; }
hash=$({ go env GOVERSION GOOS GOARCH CGO_ENABLED && versions; } | git hash-object --stdin)
binary=$cache/$name-$hash

mkdir -p "$cache"
# Builds in several clones wait for each other instead of compiling the same packages at the same time.
exec 9>"$cache/$name.lock"
if command -v flock >/dev/null; then flock 9; fi
if [ ! -x "$binary" ]; then
	if [ "$package" ]; then
		CGO_ENABLED=0 GOBIN=$binary.$$ go install -trimpath -ldflags "-s -w ${LDFLAGS-}" "$package"
		mv "$binary.$$"/* "$binary"
		rmdir "$binary.$$"
	else
		go build -modfile="tools/$name.mod" -ldflags "-s -w ${LDFLAGS-}" -o "$binary.$$" tool
		mv "$binary.$$" "$binary" # at once, because another build may run at the same time
	fi
fi
mkdir -p .tools/bin
ln -sf "$binary" ".tools/bin/$name"
touch "$binary" # for make: newer than the module files
