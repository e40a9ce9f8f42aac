//go:build !nodemo

package main

import (
	"context"
	"crypto/rand"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/spf13/cobra"
	"golang.org/x/text/language"

	"github.com/babelftp/babelftp/internal/admin"
	"github.com/babelftp/babelftp/internal/base/passwordhash"
	"github.com/babelftp/babelftp/internal/config"
	"github.com/babelftp/babelftp/internal/config/value"
	"github.com/babelftp/babelftp/internal/server"
	"github.com/babelftp/babelftp/internal/server/serve"
	"github.com/babelftp/babelftp/internal/storage/embeddeds3"
)

const (
	demoListen   = "127.0.0.1:2121"
	demoAdmin    = "127.0.0.1:9122"
	anyPort      = "127.0.0.1:0" // used if demoAdmin is taken
	demoPassword = "demo"
	// demoAdministrator is an administrator whose password is random in each demo.
	demoAdministrator = "admin"
	// demoDrain is the time that running transfers get after Ctrl-C. It is short because somebody is waiting
	// at the terminal.
	demoDrain = 5 * time.Second
	// closeTimeout limits the time that the S3 server may take to stop.
	closeTimeout = 10 * time.Second
)

// demoGreeting is the greeting of the tenant demo in all built-in languages. The tenant atelier only has
// three, to show what readers of other languages get.
//
//go:embed demo_greeting.json
var demoGreeting []byte

// A demo holds the flags of the demo command.
type demo struct {
	listen, data, s3Listen, locales string
	verbose                         bool
}

func newDemoCommand() *cobra.Command {
	var d demo
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Try babelftp with a built-in S3 server",
		Long: "Start an S3 server in this process and serve two tenants on it until Ctrl-C. The users are demo, and " +
			"marie of the tenant atelier, both\n" +
			"with the password demo. The demo needs no configuration and prints what to try next.\n\n" +
			"Files are stored in a temporary directory that is removed at the end, or under --data, where the next " +
			"start finds them.",
		Example: "  babelftp demo\n" +
			"  babelftp demo --data ./demo-data --listen 127.0.0.1:2222",
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return d.run(cmd) },
	}
	flags := cmd.Flags()
	flags.StringVar(&d.listen, "listen", demoListen, "the `ADDRESS` to serve FTP on, host:port")
	flags.StringVar(&d.data, "data", "", "the `DIR` to store files under")
	flags.StringVar(
		&d.locales, "locales", "", "a `DIR` of catalogs to use in addition to the built-in ones, to try a translation")
	flags.StringVar(
		&d.s3Listen, "s3-listen", "", "also serve S3 on this `ADDRESS`, to use the buckets with S3 clients")
	flags.BoolVarP(&d.verbose, "verbose", "v", false, "log what happens")
	return cmd
}

func (d *demo) run(cmd *cobra.Command) (err error) {
	for flag, address := range map[string]string{"listen": d.listen, "s3-listen": d.s3Listen} {
		if _, _, err := net.SplitHostPort(address); err != nil && (address != "" || flag == "listen") {
			return newUsageError(cmd, "invalid --%s %q: want an address such as %s", flag, address, demoListen)
		}
	}
	ctx, now, stop := serve.Signals(cmd.Context())
	defer stop()
	defer func() {
		if ctx.Err() != nil && errors.Is(err, context.Canceled) { // Ctrl-C before the server was ready
			err = nil
		}
	}()
	log, tail := d.logger(cmd.ErrOrStderr())
	if d.locales != "" { // because the S3 server changes the working directory
		if d.locales, err = filepath.Abs(d.locales); err != nil {
			return err
		}
	}
	dir, remove, err := d.folder()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, remove()) }()
	storage, err := embeddeds3.Start(ctx, embeddeds3.Options{Dir: dir, Listen: d.s3Listen, Logger: log})
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return fmt.Errorf("%w: choose another address with --s3-listen", err)
	case err != nil:
		return fmt.Errorf("%w: choose another directory with --data", err)
	}
	defer func() {
		closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTimeout)
		defer cancel()
		err = errors.Join(err, storage.Close(closing))
	}()

	password, token := rand.Text(), rand.Text() // credentials of the administrator
	cfg, err := demoConfig(d.listen, d.locales, password)
	if err != nil {
		return err
	}
	if err := makeBuckets(ctx, storage.Client(), cfg); err != nil {
		return err
	}
	certificate, err := selfSigned("localhost", cfg.Tenants[atelier].Hosts[0])
	if err != nil {
		return err
	}
	reach := storage.AWSConfig()
	opts := server.Options{
		AWS: &reach, Certificate: certificate, Version: build().VersionOrModule(), Logger: log, Tail: tail,
		AdminToken: token,
	}
	return serveDemo(cfg, func() error {
		srv, err := server.New(ctx, cfg, opts)
		if err != nil {
			return err
		}
		return serve.Until(ctx, now, srv, log, func() {
			fmt.Fprint(cmd.OutOrStdout(), d.welcome(srv.Addr(), dir, storage),
				administration(srv.AdminAddr(), token, password))
		})
	})
}

// serveDemo calls run. If the default port of the admin listener is taken, it tries again with any free
// port, because the user did not choose the default.
func serveDemo(cfg *config.Config, run func() error) error {
	err := run()
	busy, ok := errors.AsType[*server.ListenError](err)
	if ok && busy.Key == "admin.listen" {
		cfg.Admin.Listen = anyPort
		err = run()
		busy, ok = errors.AsType[*server.ListenError](err)
	}
	if ok {
		return fmt.Errorf(
			"cannot listen on %s: %w: choose another address with --listen, such as --listen 127.0.0.1:0", busy.Address,
			busy.Err)
	}
	return err
}

// logger returns the log of the demo, and a tail of it for administrators.
func (d *demo) logger(out io.Writer) (*slog.Logger, *admin.LogTail) {
	level := slog.LevelWarn
	if d.verbose {
		level = slog.LevelInfo
	}
	tail := admin.NewLogTail()
	return slog.New(slog.NewMultiHandler(serve.NewLogger(out, config.LogText, level).Handler(),
		serve.NewLogger(tail, config.LogText, slog.LevelDebug).Handler())), tail
}

// folder returns the absolute path of the directory that stores the files, and a function that removes it if
// it is temporary.
func (d *demo) folder() (dir string, remove func() error, err error) {
	if d.data == "" {
		dir, err = os.MkdirTemp("", "babelftp-demo-")
		return dir, func() error { return os.RemoveAll(dir) }, err
	}
	dir, err = filepath.Abs(d.data)
	return dir, func() error { return nil }, err
}

// makeBuckets creates the buckets of the tenants unless an earlier demo did.
func makeBuckets(ctx context.Context, client *s3.Client, cfg *config.Config) error {
	for name, t := range cfg.Tenants {
		_, err := client.CreateBucket(ctx, &s3.CreateBucketInput{Bucket: &t.Bucket})
		// The bucket of an earlier demo has another owner, because each demo has its own credentials.
		if _, there := errors.AsType[*types.BucketAlreadyExists](err); err != nil && !there {
			return fmt.Errorf("create the bucket of tenant %s: %w", name, err)
		}
	}
	return nil
}

// The tenants of the demo.
const (
	standard = "demo"
	atelier  = "atelier"
)

// demoConfig returns the configuration of the demo.
func demoConfig(listen, locales, password string) (*config.Config, error) {
	hash, err := passwordhash.New(demoPassword)
	if err != nil {
		return nil, err
	}
	administrator, err := passwordhash.New(password)
	if err != nil {
		return nil, err
	}
	user := &config.User{PasswordHash: value.NewSecret(hash)}
	var greeting map[language.Tag]string
	if err := json.Unmarshal(demoGreeting, &greeting); err != nil {
		return nil, err
	}
	cfg := config.Default()
	cfg.Listen = listen
	cfg.LocalesDir = locales
	cfg.Admin.Listen, cfg.Admin.Users = demoAdmin, value.NewSecret(demoAdministrator+":"+administrator)
	cfg.DrainTimeout = demoDrain
	cfg.S3.PathStyle, cfg.S3.Profile = aws.Bool(true), "versitygw"
	cfg.Tenants = map[string]*config.Tenant{
		standard: {
			Bucket:   "demo",
			Users:    map[string]*config.User{"demo": user},
			Greeting: greeting,
		},
		atelier: {
			Hosts:           []string{"ftp.atelier.example"},
			Bucket:          "atelier",
			DefaultLanguage: language.French,
			Users:           map[string]*config.User{"marie": user},
			Greeting: map[language.Tag]string{
				language.French:   "Bienvenue à l’atelier.",
				language.English:  "Welcome to the atelier.",
				language.Japanese: "アトリエへようこそ。",
			},
		},
	}
	return cfg, cfg.Validate()
}

// administration describes the admin page, with a link that logs in once.
func administration(addr net.Addr, token, password string) string {
	return fmt.Sprintf(`
See who is connected and what is transferred, in a browser on this machine:

  http://%s/login?token=%s
  (the link works once; after that, log in as %s with the password %s)
`, addr, token, demoAdministrator, password)
}

// welcome describes what to try next.
func (d *demo) welcome(addr net.Addr, dir string, storage *embeddeds3.Server) string {
	host, port, _ := net.SplitHostPort(addr.String()) // the address of a listener always has both
	ip := net.ParseIP(host)
	if ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	url := "ftp://demo:demo@" + net.JoinHostPort(host, port) + "/"
	kept := "kept for the next start"
	if d.data == "" {
		kept = "removed at the end; --data DIR keeps them"
	}
	text := fmt.Sprintf(`babelftp demo: FTP on %[1]s, user demo, password demo. Ctrl-C stops it.
Files are stored under %[2]s (%[3]s).

Try in another terminal:

  upload     echo bonjour | curl -T - %[4]shello.txt
  list       curl %[4]s
  download   curl %[4]shello.txt
  encrypted  curl -k --ssl-reqd %[4]s
  lftp       lftp -e 'set ssl:verify-certificate no' -u demo,demo -p %[5]s %[6]s

Change the language of the replies (babelftp languages lists them):

  curl       curl -v -Q 'LANG ja' %[4]s
  lftp       quote LANG ja

Another tenant, in French, with its own files:

  curl -v ftp://marie%%40atelier:demo@%[7]s/
`, addr, dir, kept, url, port, host, net.JoinHostPort(host, port))
	if storage.Addr() != "" {
		text += fmt.Sprintf(`
The buckets, for S3 clients:

  AWS_ACCESS_KEY_ID=%s AWS_SECRET_ACCESS_KEY=%s AWS_REGION=%s \
    aws --endpoint-url http://%s s3 ls s3://demo
`, storage.AccessKeyID, storage.SecretAccessKey, embeddeds3.Region, storage.Addr())
	}
	if !ip.IsLoopback() {
		text += fmt.Sprintf(
			"\nWarning: other machines may reach %s, and the password is public.\n", addr)
	}
	return text
}
