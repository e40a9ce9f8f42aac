#!/bin/sh
# Prints the section of CHANGELOG.md for a version, which becomes the text of the release.
# usage: release-notes.sh 1.2.3
set -eu
[ -n "${1:-}" ] || { echo "usage: $0 VERSION; is there a tag at this commit?" >&2; exit 1; }
awk -v heading="## [$1]" '
	index($0, heading) == 1 { found = 1; next }
	/^## \[/ { if (found) exit }
	found { print }
	END { if (!found) exit 1 }
' CHANGELOG.md || { echo "$0: CHANGELOG.md has no section $1" >&2; exit 1; }
