#!/bin/sh
# Tries each option of curl that is about FTP. TestClients explains the environment.
base=ftp://$FTP_HOST:$FTP_PORT

tls=--ssl-reqd # In active mode this curl has no TLS.

# shellcheck disable=SC2086 # no option or one
ftp() { curl -q --silent --show-error --max-time 30 --cacert "$FTP_CA" $tls --user "$FTP_USER:$FTP_PASSWORD" "$@"; }

# try says whether a test, which has the name of an option, succeeds.
try() {
	if (set -e && "$(echo "$1" | tr -- - _)") >log 2>&1; then
		echo "ok $1"
	else
		echo "not ok $1"
		sed "s/^/$1: /" log >&2
	fi
}

# has wants standard input to be a text.
has() { test "$(cat)" = "$1"; }

append() {
	echo one | ftp -T - "$base/append"
	echo two | ftp --append -T - "$base/append"
	ftp "$base/append" | tr '\n' ' ' | has 'one two '
}
continue_at() {
	echo o >part
	echo one >whole
	ftp -T whole "$base/continue"
	printf o >part && ftp --continue-at - -o part "$base/continue" && cmp part whole
	printf o | ftp -T - "$base/continue" && ftp --continue-at - -T whole "$base/continue"
	ftp "$base/continue" | has one
}
create_file_mode() { ftp --create-file-mode 0600 -T seed "$base/mode"; }
crlf() {
	printf 'a\nb\n' | ftp --crlf -T - "$base/crlf"
	ftp "$base/crlf" | od -c | grep -q '\\r  *\\n'
}
disable_eprt() { tls='' && ftp --ftp-port - --disable-eprt "$base/seed" | has seed; }
disable_epsv() { ftp --disable-epsv "$base/seed" | has seed; }
ftp_account() { ftp --ftp-account any "$base/seed" | has seed; }
ftp_alternative_to_user() { ftp --ftp-alternative-to-user 'USER other' "$base/seed" | has seed; }
ftp_create_dirs() { ftp --ftp-create-dirs -T seed "$base/deep/er/file" && ftp "$base/deep/er/file" | has seed; }
ftp_method() {
	ftp_create_dirs
	for method in multicwd nocwd singlecwd; do
		ftp --ftp-method $method "$base/deep/er/file" | has seed
		ftp --ftp-method $method -T seed "$base/deep/er/$method"
		ftp --ftp-method $method --list-only "$base/deep/er/" | grep -q $method
	done
}
ftp_pasv() { ftp --ftp-port - --ftp-pasv "$base/seed" | has seed; }
ftp_port() {
	tls=''
	ftp --ftp-port - "$base/seed" | has seed
	ftp --ftp-port - -T seed "$base/active"
}
ftp_pret() { ftp --ftp-pret "$base/seed" | has seed; }
ftp_skip_pasv_ip() {
	ftp --disable-epsv --ftp-skip-pasv-ip "$base/seed" | has seed
	ftp --disable-epsv --no-ftp-skip-pasv-ip "$base/seed" | has seed
}
ftp_ssl_ccc() { ftp --ftp-ssl-ccc "$base/seed" | has seed; }
ftp_ssl_control() { ftp --ftp-ssl-control "$base/seed" | has seed; }
head() { ftp --head "$base/seed" | grep -q 'Content-Length: 5'; }
ignore_content_length() { ftp --ignore-content-length "$base/seed" | has seed; }
limit_rate() { ftp --limit-rate 1M -T seed "$base/slow" && ftp --limit-rate 1M "$base/slow" | has seed; }
list_only() { ftp --list-only "$base/" | grep -q '^seed'; }
max_filesize() { ! ftp --max-filesize 2 "$base/seed"; }
parallel() { ftp --parallel -o a "$base/seed" -o b "$base/seed" && cmp a b; }
quote() {
	ftp -T seed "$base/quoted"
	ftp --quote 'RNFR quoted' --quote 'RNTO again' --quote '*DELE nothing' --quote '-RNFR again' --quote '-RNTO quoted' "$base/again"
	ftp "$base/quoted" | has seed
}
range() { ftp --range 1-2 "$base/seed" | has ee && ftp --range -3 "$base/seed" | has ed; }
remote_time() {
	ftp --quote 'MFMT 20200102030405 seed' --remote-time -o timed "$base/seed"
	date -u -r timed +%Y%m%d%H%M%S | has 20200102030405
}
time_cond() {
	ftp --time-cond '2030-01-01' -o newer "$base/seed"
	test ! -s newer
	ftp --time-cond '-2030-01-01' "$base/seed" | has seed
}
tls_max() { ftp --tls-max 1.2 "$base/seed" | has seed && ftp --tlsv1.3 "$base/seed" | has seed; }
type() { ftp "$base/seed;type=a" | tr -d '\r' | has seed && ftp "$base/;type=d" | grep -q '^seed'; }
upload_file() { ftp -T '{seed,log}' "$base/" && ftp "$base/log" >/dev/null; }
use_ascii() { ftp --use-ascii -T seed "$base/text" && ftp "$base/text" | has seed; }

echo seed >seed
ftp -T seed "$base/seed"
for option in append continue-at create-file-mode crlf disable-eprt disable-epsv ftp-account ftp-alternative-to-user ftp-create-dirs \
	ftp-method ftp-pasv ftp-port ftp-pret ftp-skip-pasv-ip ftp-ssl-ccc ftp-ssl-control head ignore-content-length limit-rate list-only \
	max-filesize parallel quote range remote-time time-cond tls-max type upload-file use-ascii; do
	try $option
done
