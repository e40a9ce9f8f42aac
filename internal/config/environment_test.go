package config

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/babelftp/babelftp/internal/base/netaddr"
)

// load reads a configuration with the variables in environ from a fresh folder that holds files.
func load(t *testing.T, text string, files map[string]string, environ ...string) (*Config, error) {
	t.Helper()
	dir := t.TempDir()
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return NewLoader(filepath.Join(dir, "babelftp.yaml"), environ).parse([]byte(text))
}

func TestEnvironment(t *testing.T) {
	files := map[string]string{"secret": "from a file\r\n", "id": "id\n\n"}
	for _, tc := range []struct {
		name, text string
		environ    []string
		get        func(*Config) any
		want       any
	}{
		{
			"top-level", minimal, []string{"BABELFTP_LISTEN=:2121"},
			func(c *Config) any { return c.Listen }, ":2121",
		},
		{
			"replaces-the-file", "listen: ':22'" + minimal, []string{"BABELFTP_LISTEN=:2121"},
			func(c *Config) any { return c.Listen }, ":2121",
		},
		{
			"replaces-a-broken-value", "idle_timeout: soon" + minimal, []string{"BABELFTP_IDLE_TIMEOUT=1m"},
			func(c *Config) any { return c.IdleTimeout }, time.Minute,
		},
		{
			"empty-is-not-set", "listen: ':22'" + minimal, []string{"BABELFTP_LISTEN="},
			func(c *Config) any { return c.Listen }, ":22",
		},
		{
			"section-that-the-file-lacks", minimal, []string{"BABELFTP_PASSIVE_PORTS=40000-40009"},
			func(c *Config) any { return c.Passive.Ports }, netaddr.PortRange{First: 40000, Last: 40009},
		},
		{
			"optional-value", minimal, []string{"BABELFTP_S3_PATH_STYLE=true"},
			func(c *Config) any { return *c.S3.PathStyle }, true,
		},
		{
			"unknown-hosts", minimal, []string{"BABELFTP_UNKNOWN_HOSTS=ignore"},
			func(c *Config) any { return c.UnknownHosts }, IgnoreUnknownHosts,
		},
		{
			"variable-that-names-a-file", minimal,
			[]string{"BABELFTP_S3_ACCESS_KEY_ID=id", "BABELFTP_S3_SECRET_ACCESS_KEY_FILE=secret"},
			func(c *Config) any { return c.S3.SecretAccessKey.Reveal() }, "from a file",
		},
		{
			"key-that-names-a-file", "s3: {access_key_id: id, secret_access_key_file: secret}" + minimal, nil,
			func(c *Config) any { return c.S3.SecretAccessKey.Reveal() }, "from a file",
		},
		{
			"one-line-break-is-dropped", "s3: {access_key_id_file: id, secret_access_key: secret}" + minimal, nil,
			func(c *Config) any { return c.S3.AccessKeyID }, "id\n",
		},
		{
			"variable-replaces-a-key-that-names-a-file",
			"s3: {access_key_id: id, secret_access_key_file: nowhere}" + minimal,
			[]string{"BABELFTP_S3_SECRET_ACCESS_KEY=from the environment"},
			func(c *Config) any { return c.S3.SecretAccessKey.Reveal() }, "from the environment",
		},
		{
			"variables-of-a-kubernetes-service", minimal,
			[]string{
				"BABELFTP_SERVICE_HOST=10.0.0.1", "BABELFTP_SERVICE_PORT=21", "BABELFTP_SERVICE_PORT_FTP=21",
				"BABELFTP_PORT=tcp://10.0.0.1:21",
				"BABELFTP_PORT_21_TCP=tcp://10.0.0.1:21", "BABELFTP_PORT_21_TCP_PROTO=tcp",
				"BABELFTP_METRICS_PORT_9121_TCP_ADDR=10.0.0.1",
			},
			func(c *Config) any { return c.Listen }, ":21",
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			cfg, err := load(t, tc.text, files, tc.environ...)
			if err != nil {
				t.Fatal(err)
			}
			if got := tc.get(cfg); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

func TestEnvironmentProblems(t *testing.T) {
	for _, tc := range []struct {
		name, text string
		environ    []string
		want       string
	}{
		{
			"unknown-variable", minimal, []string{"BABELFTP_S3_SECRET_ACESS_KEY=x"},
			"environment variable BABELFTP_S3_SECRET_ACESS_KEY: is no setting: did you mean " +
				"BABELFTP_S3_SECRET_ACCESS_KEY?",
		},
		{
			"like-a-port-of-kubernetes", minimal, []string{"BABELFTP_PASSIVE_PORT=30000-30099"},
			"environment variable BABELFTP_PASSIVE_PORT: is no setting: did you mean BABELFTP_PASSIVE_PORTS?",
		},
		{
			"credentials-in-an-address", minimal, []string{"BABELFTP_S3_ENDPOINT=http://id:hidden@127.0.0.1:9000"},
			"environment variable BABELFTP_S3_ENDPOINT: s3.endpoint: holds credentials: write them as access_key_id " +
				"and secret_access_key",
		},
		{
			"broken-value", minimal, []string{"BABELFTP_MAX_FAILED_LOGINS=many"},
			`environment variable BABELFTP_MAX_FAILED_LOGINS: max_failed_logins: "many" is no whole number: write it like 10`,
		},
		{
			"broken-rule", minimal, []string{"BABELFTP_MAX_FAILED_LOGINS=0"},
			"environment variable BABELFTP_MAX_FAILED_LOGINS: max_failed_logins: must be at least 1",
		},
		{
			"tenant", minimal, []string{"BABELFTP_TENANTS_ACME_BUCKET=acme-files"},
			"environment variable BABELFTP_TENANTS_ACME_BUCKET: is no setting: what is below tenants comes from the " +
				"file only, write it there; a secret can have a file of its own",
		},
		{
			"both-forms", minimal, []string{"BABELFTP_S3_ACCESS_KEY_ID=a", "BABELFTP_S3_ACCESS_KEY_ID_FILE=id"},
			"environment variable BABELFTP_S3_ACCESS_KEY_ID: s3.access_key_id: BABELFTP_S3_ACCESS_KEY_ID_FILE is set " +
				"too: remove one",
		},
		{
			"no-secret-in-a-file", minimal, []string{"BABELFTP_LISTEN_FILE=listen"},
			"environment variable BABELFTP_LISTEN_FILE: is no setting: only secrets come from files, set BABELFTP_LISTEN",
		},
		{
			"files-of-files", minimal, []string{"BABELFTP_LOCALES_DIR_FILE=x"},
			"environment variable BABELFTP_LOCALES_DIR_FILE: is no setting: only secrets come from files, set " +
				"BABELFTP_LOCALES_DIR",
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := load(t, tc.text, nil, tc.environ...)
			if err == nil || err.Error() != tc.want {
				t.Errorf("got  %v\nwant %s", err, tc.want)
			}
		})
	}
}

func TestValueAndFileBothGiven(t *testing.T) {
	cfg := "s3: {access_key_id: id, secret_access_key: a, secret_access_key_file: b}" + minimal
	_, err := NewLoader("babelftp.yaml", nil).parse([]byte(cfg))
	const want = "babelftp.yaml:1:47: s3.secret_access_key: secret_access_key and secret_access_key_file are both " +
		"given: remove one"
	if err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
}
