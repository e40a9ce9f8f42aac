#!/bin/sh
# Runs the suite of the driver on the S3 server that the variables CLOUD_... name, and writes a report for
# docs/s3-servers.md. See make cloud.
set -u
cd "$(dirname "$0")/.." || exit

missing=
for name in CLOUD_ENDPOINT CLOUD_BUCKET CLOUD_ACCESS_KEY_ID CLOUD_SECRET_ACCESS_KEY; do
  eval "value=\${$name:-}"
  [ -n "$value" ] || missing="$missing $name"
done
if [ -n "$missing" ]; then
  cat >&2 <<EOF
missing:$missing

make cloud runs the suite of the driver on any S3 server, below a prefix that it makes in your bucket:
  CLOUD_ENDPOINT           the URL of the server, or aws
  CLOUD_BUCKET             an existing bucket; the suite touches nothing outside its prefix
  CLOUD_ACCESS_KEY_ID      the credentials
  CLOUD_SECRET_ACCESS_KEY
optional:
  CLOUD_REGION=us-east-1   CLOUD_PREFIX=   CLOUD_PATH_STYLE=true   CLOUD_PROFILE=auto
  CLOUD_LIMITS=            what the server does not have, such as tags,encryption,storage-classes
  CLOUD_GROUPS=            a part of the suite, such as write,rename
  CLOUD_REPORT=cloud.md    the report for docs/s3-servers.md
EOF
  exit 2
fi

report=${CLOUD_REPORT:-cloud.md}
log=$report.log
CGO_ENABLED=0 GOFLAGS=-trimpath go test -tags cloud -v -count 1 -timeout 120m -parallel 4 -run '^TestCloud$' ./driver >"$log" 2>&1
status=$?
begun=$(sed -n 's/^.*cloud: \(endpoint=.*\)$/\1/p' "$log" | head -n 1)
if [ -z "$begun" ]; then
  grep -v '^=== \|^--- \|^FAIL\|^exit status' "$log" | sed 's/^ *cloud[a-z_]*_test.go:[0-9]*: //; s/^        //' >&2
  rm -f "$log"
  exit 1
fi

# A case has three names: TestCloud/group/case. Lines with two are of groups.
cases() { sed -n "s/^ *--- $1: TestCloud\/\([^ ]*\/[^ ]*\) .*/\1/p" "$log" | sort -u; }
value() { printf '%s\n' "$begun" | tr ' ' '\n' | sed -n "s/^$1=//p"; }
failed=$(cases FAIL | wc -l)
{
  printf '| %s | `%s` | %s | %s | %d | %d |\n' "$(value endpoint)" "$(value profile)" "$(date -u +%Y-%m)" \
    "$(git describe --tags --always --dirty 2>/dev/null || echo unknown)" "$(cases PASS | wc -l)" "$failed"
  [ -z "${CLOUD_LIMITS:-}" ] || printf '\nDeclared as limits: `%s`.\n' "$CLOUD_LIMITS"
  [ "$failed" -eq 0 ] || { printf '\nFailed:\n\n' && cases FAIL | sed 's/.*/- `&`/'; }
} >"$report"
cat "$report"
echo "paste $report into the reports of docs/s3-servers.md; $log has the log" >&2
exit "$status"
