package config

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/text/language"

	"github.com/babelftp/babelftp/i18n"
	"github.com/babelftp/babelftp/internal/base/netaddr"
	"github.com/babelftp/babelftp/internal/names/pathname"
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
	const tenants = minimal + `
  beta-eu:
    bucket: beta
    greeting: {en: Hello}
    messages: {goodbye: {pt-BR: Tchau}}
    directory_encodings: {/old files: utf-8}
    users:
      mary.lee: {password_hash: "` + hash + `", home: /mary}
`
	files := map[string]string{"secret": "from a file\r\n", "id": "id\n\n"}
	for _, tc := range []struct {
		name, text string
		environ    []string
		get        func(*Config) any
		want       any
	}{
		{
			"top-level", tenants, []string{"BABELFTP_LISTEN=:2121"},
			func(c *Config) any { return c.Listen }, ":2121",
		},
		{
			"replaces-the-file", "listen: ':22'" + tenants, []string{"BABELFTP_LISTEN=:2121"},
			func(c *Config) any { return c.Listen }, ":2121",
		},
		{
			"replaces-a-broken-value", "idle_timeout: soon" + tenants, []string{"BABELFTP_IDLE_TIMEOUT=1m"},
			func(c *Config) any { return c.IdleTimeout }, time.Minute,
		},
		{
			"empty-is-not-set", "listen: ':22'" + tenants, []string{"BABELFTP_LISTEN="},
			func(c *Config) any { return c.Listen }, ":22",
		},
		{
			"section-that-the-file-lacks", tenants, []string{"BABELFTP_PASSIVE_PORTS=40000-40009"},
			func(c *Config) any { return c.Passive.Ports }, netaddr.PortRange{First: 40000, Last: 40009},
		},
		{
			"optional-value", tenants, []string{"BABELFTP_S3_PATH_STYLE=true"},
			func(c *Config) any { return *c.S3.PathStyle }, true,
		},
		{
			"tenant-with-a-hyphen", tenants, []string{"BABELFTP_TENANTS_BETA_EU_S3_REGION=eu-west-1"},
			func(c *Config) any { return c.Tenants["beta-eu"].S3.Region }, "eu-west-1",
		},
		{
			"user-with-a-dot", tenants, []string{"BABELFTP_TENANTS_BETA_EU_USERS_MARY_LEE_HOME=/lee"},
			func(c *Config) any { return c.Tenants["beta-eu"].Users["mary.lee"].Home }, "/lee",
		},
		{
			"greeting", tenants, []string{"BABELFTP_TENANTS_BETA_EU_GREETING_EN=Good morning"},
			func(c *Config) any {
				for _, text := range c.Tenants["beta-eu"].Greeting {
					return text
				}
				return nil
			}, "Good morning",
		},
		{
			"message", tenants, []string{"BABELFTP_TENANTS_BETA_EU_MESSAGES_GOODBYE_PT_BR=Até logo"},
			func(c *Config) any {
				return c.Tenants["beta-eu"].Messages[i18n.Goodbye][language.BrazilianPortuguese].Msg
			}, "Até logo",
		},
		{
			"directory-encoding", tenants, []string{"BABELFTP_TENANTS_BETA_EU_DIRECTORY_ENCODINGS__OLD_FILES=big5"},
			func(c *Config) any { return c.Tenants["beta-eu"].DirectoryEncodings["/old files"].String() }, "big5",
		},
		{
			"pathname-encoding", tenants, []string{"BABELFTP_TENANTS_ACME_PATHNAME_ENCODING=raw"},
			func(c *Config) any { return c.Tenants["acme"].PathnameEncoding.Raw() }, true,
		},
		{
			"normalization", tenants, []string{"BABELFTP_TENANTS_ACME_NORMALIZATION=none"},
			func(c *Config) any { return c.Tenants["acme"].Normalization }, pathname.None,
		},
		{
			"presign", tenants, []string{"BABELFTP_TENANTS_ACME_PRESIGN=90m"},
			func(c *Config) any { return c.Tenants["acme"].Presign }, 90 * time.Minute,
		},
		{
			"greet-after-lang", tenants, []string{"BABELFTP_TENANTS_ACME_GREET_AFTER_LANG=true"},
			func(c *Config) any { return c.Tenants["acme"].GreetAfterLang }, true,
		},
		{
			"unknown-hosts", tenants, []string{"BABELFTP_UNKNOWN_HOSTS=ignore"},
			func(c *Config) any { return c.UnknownHosts }, IgnoreUnknownHosts,
		},
		{
			"variable-that-names-a-file", tenants,
			[]string{"BABELFTP_S3_ACCESS_KEY_ID=id", "BABELFTP_S3_SECRET_ACCESS_KEY_FILE=secret"},
			func(c *Config) any { return c.S3.SecretAccessKey.Reveal() }, "from a file",
		},
		{
			"key-that-names-a-file", "s3: {access_key_id: id, secret_access_key_file: secret}" + tenants, nil,
			func(c *Config) any { return c.S3.SecretAccessKey.Reveal() }, "from a file",
		},
		{
			"one-line-break-is-dropped", "s3: {access_key_id_file: id, secret_access_key: secret}" + tenants, nil,
			func(c *Config) any { return c.S3.AccessKeyID }, "id\n",
		},
		{
			"variable-replaces-a-key-that-names-a-file",
			"s3: {access_key_id: id, secret_access_key_file: nowhere}" + tenants,
			[]string{"BABELFTP_S3_SECRET_ACCESS_KEY=from the environment"},
			func(c *Config) any { return c.S3.SecretAccessKey.Reveal() }, "from the environment",
		},
		{
			"variables-of-a-kubernetes-service", tenants,
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
			"unknown-tenant", minimal, []string{"BABELFTP_TENANTS_ACNE_BUCKET=x"},
			"environment variable BABELFTP_TENANTS_ACNE_BUCKET: is no setting: did you mean " +
				"BABELFTP_TENANTS_ACME_BUCKET?",
		},
		{
			"broken-value", minimal, []string{"BABELFTP_MAX_FAILED_LOGINS=many"},
			`environment variable BABELFTP_MAX_FAILED_LOGINS: max_failed_logins: "many" is no whole number: write it like 10`,
		},
		{
			"broken-rule", minimal, []string{"BABELFTP_TENANTS_ACME_BUCKET=x"},
			`environment variable BABELFTP_TENANTS_ACME_BUCKET: tenants.acme.bucket: "x" is no name for a bucket: write 3 to 63 characters`,
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
		{
			"two-meanings", minimal + "      a-b: {password_hash: \"" + hash + "\"}\n      a.b: {password_hash: \"" +
				hash + "\"}\n",
			[]string{"BABELFTP_TENANTS_ACME_USERS_A_B_HOME=/x"},
			"environment variable BABELFTP_TENANTS_ACME_USERS_A_B_HOME: tenants.acme.users.a.b.home: the variable " +
				"could mean " +
				"tenants.acme.users.a-b.home as well: remove it and write the value into the file, or rename one",
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
