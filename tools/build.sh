#!/bin/sh
# Puts the tool NAME into .tools/bin, built from the versions in tools/NAME.mod. A cache outside of the repository keeps each build, so
# that another clone or branch with the same versions takes it from there.
# usage: build.sh NAME
# LDFLAGS is for the linker, such as a version.
set -eu
name=$1
cache=${XDG_CACHE_HOME:-$HOME/.cache}/babelftp-tools
hash=$({ go env GOVERSION GOOS GOARCH CGO_ENABLED && cat "tools/$name.mod" "tools/$name.sum"; } | git hash-object --stdin)
binary=$cache/$name-$hash

mkdir -p "$cache"
# Builds in several clones wait for each other instead of compiling the same packages at the same time.
exec 9>"$cache/$name.lock"
if command -v flock >/dev/null; then flock 9; fi
if [ ! -x "$binary" ]; then
	go build -modfile="tools/$name.mod" -ldflags "-s -w ${LDFLAGS-}" -o "$binary.$$" tool
	mv "$binary.$$" "$binary" # at once, because another build may run at the same time
fi
mkdir -p .tools/bin
ln -sf "$binary" ".tools/bin/$name"
touch "$binary" # for make: newer than the module files
