#!/bin/sh
# Runs each fuzz target for a time. Without it the seeds and the crashers found so far run in every `go test`.
# usage: fuzz.sh TIME
set -eu
# Only packages whose text has a fuzz target are asked for theirs: to ask all would link every test.
packages=$(grep -rl '^func Fuzz' --include='*_test.go' ./*/ | xargs -n 1 dirname | sort -u)
for package in $packages; do
	for target in $(go test -list '^Fuzz' "$package" | grep '^Fuzz'); do
		echo "$target in $package for $1"
		go test -run '^$' -fuzz "^$target\$" -fuzztime "$1" "$package"
	done
done
