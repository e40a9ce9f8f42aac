package config

import (
	"fmt"
	"path/filepath"
	"testing"
)

// load loads a configuration from a new folder with these files and variables.
func load(t *testing.T, text string, files map[string]string, environ ...string) (*Config, error) {
	t.Helper()
	dir := t.TempDir()
	for name, content := range files {
		writeFile(t, filepath.Join(dir, name), content)
	}
	return NewLoader(filepath.Join(dir, "babelftp.yaml"), environ).parse([]byte(text))
}

// Scalars of the server can be set by variables, and secrets can be read from files.
func TestEnvironment(t *testing.T) {
	const (
		keys       = "s3: {access_key_id: id, secret_access_key: secret}"
		keyFile    = "s3: {access_key_id: id, secret_access_key_file: key}"
		noKeyFile  = "s3: {access_key_id: id, secret_access_key_file: nowhere}"
		idOfFile   = "s3: {access_key_id_file: lines, secret_access_key: secret}"
		unset      = "unknown variable: "
		ofTheFiles = "only secrets can be read from files, set "
	)
	files := map[string]string{"key": "from a file\r\n", "lines": "id\n\n"}
	for _, tc := range []struct {
		name, text string
		environ    []string
		want       string // the values, or the problem
	}{
		{"none", keys, nil, `":21" 5m0s "" "id" "secret"`},
		{"value", "", []string{"BABELFTP_LISTEN=:2121"}, `":2121" 5m0s "" "" ""`},
		{"replaces-the-file", "listen: ':22'", []string{"BABELFTP_LISTEN=:2121"}, `":2121" 5m0s "" "" ""`},
		{"replaces-a-broken-value", "idle_timeout: soon", []string{"BABELFTP_IDLE_TIMEOUT=1m"}, `":21" 1m0s "" "" ""`},
		{"empty-is-not-set", "listen: ':22'", []string{"BABELFTP_LISTEN="}, `":22" 5m0s "" "" ""`},
		{"section", "", []string{"BABELFTP_PASSIVE_PORTS=40000-40009"}, `":21" 5m0s "40000-40009" "" ""`},
		{"file", keyFile, nil, `":21" 5m0s "" "id" "from a file"`},
		{"one-line-break-is-dropped", idOfFile, nil, `":21" 5m0s "" "id\n" "secret"`},
		{"variable-that-names-a-file", "", []string{"BABELFTP_S3_ACCESS_KEY_ID=id",
			"BABELFTP_S3_SECRET_ACCESS_KEY_FILE=key"}, `":21" 5m0s "" "id" "from a file"`},
		{"variable-replaces-a-file", noKeyFile, []string{"BABELFTP_S3_SECRET_ACCESS_KEY=variable"},
			`":21" 5m0s "" "id" "variable"`},
		{"kubernetes", "", []string{"BABELFTP_SERVICE_HOST=10.0.0.1", "BABELFTP_SERVICE_PORT=21",
			"BABELFTP_SERVICE_PORT_FTP=21", "BABELFTP_PORT=tcp://10.0.0.1:21", "BABELFTP_PORT_21_TCP=tcp://10.0.0.1:21",
			"BABELFTP_PORT_21_TCP_PROTO=tcp", "BABELFTP_METRICS_PORT_9121_TCP_ADDR=10.0.0.1"},
			`":21" 5m0s "" "" ""`},
		{"like-kubernetes", "", []string{"BABELFTP_PASSIVE_PORT=30000-30099"},
			"BABELFTP_PASSIVE_PORT: " + unset + "did you mean BABELFTP_PASSIVE_PORTS?"},
		{"unknown", "", []string{"BABELFTP_S3_SECRET_ACESS_KEY=x"},
			"BABELFTP_S3_SECRET_ACESS_KEY: " + unset + "did you mean BABELFTP_S3_SECRET_ACCESS_KEY?"},
		{"tenant", "", []string{"BABELFTP_TENANTS_ACME_BUCKET=b"}, "BABELFTP_TENANTS_ACME_BUCKET: " + unset +
			"keys below tenants can only be set in the file; a secret can be read from its own file"},
		{"file-of-no-secret", "", []string{"BABELFTP_LISTEN_FILE=listen"},
			"BABELFTP_LISTEN_FILE: " + unset + ofTheFiles + "BABELFTP_LISTEN"},
		{"file-of-a-folder", "", []string{"BABELFTP_LOCALES_DIR_FILE=x"},
			"BABELFTP_LOCALES_DIR_FILE: " + unset + ofTheFiles + "BABELFTP_LOCALES_DIR"},
		{"wrong-type", "", []string{"BABELFTP_LIMITS_BANS_USER_SCORE=many"},
			`BABELFTP_LIMITS_BANS_USER_SCORE: limits.bans.user_score: "many" is not a whole number: write it like 10`},
		{"broken-rule", "", []string{"BABELFTP_S3_ENDPOINT=http://id:hidden@127.0.0.1"},
			"BABELFTP_S3_ENDPOINT: s3.endpoint: contains credentials: set access_key_id and secret_access_key instead"},
		{"two-variables", "", []string{"BABELFTP_S3_ACCESS_KEY_ID=a", "BABELFTP_S3_ACCESS_KEY_ID_FILE=id"},
			"BABELFTP_S3_ACCESS_KEY_ID: s3.access_key_id: BABELFTP_S3_ACCESS_KEY_ID_FILE is also set: remove one"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			cfg, err := load(t, tc.text+minimal, files, tc.environ...)
			var got string
			if err != nil {
				got, tc.want = err.Error(), "environment variable "+tc.want
			} else {
				got = fmt.Sprintf("%q %s %q %q %q", cfg.Listen, cfg.IdleTimeout, cfg.Passive.Ports, cfg.S3.AccessKeyID,
					cfg.S3.SecretAccessKey.Reveal())
			}
			if got != tc.want {
				t.Errorf("got  %s\nwant %s", got, tc.want)
			}
		})
	}
}
