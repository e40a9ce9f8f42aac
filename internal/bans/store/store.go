// Package store keeps scores and bans in a Redis or Valkey server, so that several servers share them.
//
// A [Store] changes them by Lua scripts, which are atomic. All times are by the clock of the store (TIME), and bans leave it as the time that is
// left, so the clocks of the servers do not matter. Each change has a [Version]. [Store.Subscribe] tells of changes (PUBLISH).
// Keys end by themselves when they are not needed. Their names and values hold addresses and names of users, and no passwords.
package store

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	_ "embed"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"
	"github.com/redis/go-redis/v9/maintnotifications"
)

const (
	// connectTimeout is how long the store may take to accept a connection.
	connectTimeout = 2 * time.Second
	// requestTimeout is how long it may take to answer. No login waits for it. After that a server counts for itself and forgets these scores later,
	// so a store that is slow for a moment should not count as down.
	requestTimeout = 3 * time.Second
	// loadTimeout is how long it may take to send all bans: some 100,000 of them in a second.
	loadTimeout = 10 * time.Second
	// connections are for the requests of one goroutine, and for those of administrators.
	connections = 4
)

// Names of keys. The braces keep them together in a cluster.
const (
	prefix      = "{babelftp}:"
	bansKey     = prefix + "bans"    // sorted set: names by the time at which they end, in milliseconds
	reasonsKey  = prefix + "reasons" // hash: reasons by name
	versionKey  = prefix + "version" // hash: a Version
	scorePrefix = prefix + "score:"  // hash: points, and when that was right
)

// A Ban is a name that is refused for a time.
type Ban struct {
	Name, Reason string
	Left         time.Duration // 0 or less: the ban has ended
}

// A Version numbers the changes. A store that has lost its data begins another epoch.
type Version struct {
	Epoch  string // empty as long as there was no change
	Number int64
}

// Lacks tells whether the store has lost changes that a server knows. An empty version knows none.
func (v Version) Lacks(known Version) bool {
	return known.Epoch != "" && (v.Epoch != known.Epoch || v.Number < known.Number)
}

// A Change is a new ban, or the end of one.
type Change struct {
	Version
	Ban
}

// A Score is what failures add to the score of a name, and at which score it is banned.
type Score struct {
	Name         string
	Points, Most float64
}

// A Failure adds to scores.
type Failure struct {
	Scores   []Score
	HalfLife time.Duration // in which scores halve
	Ban      Ban           // of those that reach their maximum, without the name
}

// A Store is a Redis or Valkey server.
type Store struct {
	client  *redis.Client
	channel string
	key     []byte
}

// New makes a store of a URL: redis://[USER:PASSWORD@]HOST[:PORT][/DB], or rediss:// for TLS. It does not connect. authorities sign the certificate
// of the store; nil are those of the system. The error does not show the URL.
func New(url string, authorities *x509.CertPool) (*Store, error) {
	opts, err := redis.ParseURL(url)
	if err != nil {
		return nil, errors.New("this is no URL of a Redis server: write it like redis://store.example.com:6379/0")
	}
	logging.Disable() // the caller logs errors
	opts.Protocol = 2
	opts.DialTimeout, opts.ReadTimeout, opts.WriteTimeout, opts.PoolTimeout = connectTimeout, requestTimeout, requestTimeout, requestTimeout
	opts.ContextTimeoutEnabled = true
	opts.MaxRetries, opts.DialerRetries = -1, 1
	opts.PoolSize = connections
	opts.DisableIdentity = true
	opts.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	if opts.TLSConfig != nil {
		opts.TLSConfig.RootCAs, opts.TLSConfig.MinVersion = authorities, tls.VersionTLS12
	}
	key := sha256.Sum256([]byte(url))
	// Channels belong to no database.
	return &Store{client: redis.NewClient(opts), channel: prefix + "changes:" + strconv.Itoa(opts.DB), key: key[:]}, nil
}

// Address is the host and the port, for messages.
func (s *Store) Address() string { return s.client.Options().Addr }

// Key is a secret that all servers know which have the same URL, with its password.
func (s *Store) Key() []byte { return s.key }

// Close closes all connections.
func (s *Store) Close() error { return s.client.Close() }

//go:embed scripts/common.lua
var common string

//go:embed scripts/fail.lua
var fail string

//go:embed scripts/ban.lua
var ban string

//go:embed scripts/lift.lua
var lift string

//go:embed scripts/load.lua
var load string

// run runs a script on the keys of all bans and on those of some scores.
func (s *Store) run(ctx context.Context, timeout time.Duration, script string, names []string, args ...any) *redis.Cmd {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	keys := []string{bansKey, reasonsKey, versionKey}
	for _, name := range names {
		keys = append(keys, scorePrefix+name)
	}
	return redis.NewScript(common+script).Run(ctx, s.client.WithTimeout(timeout), keys, append([]any{s.channel}, args...)...)
}

// Fail adds to scores, and returns the names that are banned because of that.
func (s *Store) Fail(ctx context.Context, f Failure) (banned []string, err error) {
	var names []string
	args := []any{f.Ban.Reason, f.HalfLife.Milliseconds(), f.Ban.Left.Milliseconds()}
	for _, score := range f.Scores {
		names = append(names, score.Name)
		args = append(args, score.Name, score.Points, score.Most)
	}
	return s.run(ctx, requestTimeout, fail, names, args...).StringSlice()
}

// Ban bans a name, in place of the ban that it has.
func (s *Store) Ban(ctx context.Context, b Ban) error {
	return s.run(ctx, requestTimeout, ban, nil, b.Name, b.Reason, b.Left.Milliseconds()).Err()
}

// Lift ends the ban of a name, if there is one, and forgets its score.
func (s *Store) Lift(ctx context.Context, name string) error {
	return s.run(ctx, requestTimeout, lift, []string{name}, name).Err()
}

// Version is that of the last change.
func (s *Store) Version(ctx context.Context) (Version, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	fields, err := s.client.HGetAll(ctx, versionKey).Result()
	if err != nil || len(fields) == 0 {
		return Version{}, err
	}
	number, err := strconv.ParseInt(fields["number"], 10, 64)
	return Version{fields["epoch"], number}, err
}

// Load returns all bans, and the version of the last change.
func (s *Store) Load(ctx context.Context) (version Version, all []Ban, err error) {
	answer, err := s.run(ctx, loadTimeout, load, nil).StringSlice()
	if err != nil {
		return Version{}, nil, err
	}
	const fields = 3
	if len(answer)%fields != 2 {
		return Version{}, nil, fmt.Errorf("the store sent %d values for its bans", len(answer))
	}
	version.Epoch = answer[0]
	if version.Number, err = strconv.ParseInt(answer[1], 10, 64); err != nil {
		return Version{}, nil, err
	}
	for rest := answer[2:]; len(rest) > 0; rest = rest[fields:] {
		left, err := milliseconds(rest[1])
		if err != nil {
			return Version{}, nil, err
		}
		all = append(all, Ban{Name: rest[0], Reason: rest[2], Left: left})
	}
	return version, all, nil
}

func milliseconds(text string) (time.Duration, error) {
	n, err := strconv.ParseInt(text, 10, 64)
	return time.Duration(n) * time.Millisecond, err
}

// A Subscription tells of changes.
type Subscription struct {
	pubsub   *redis.PubSub
	messages <-chan Message
}

// Subscribe returns when the store sends changes. A connection that is lost may lose some: compare the version from time to time.
func (s *Store) Subscribe(ctx context.Context) (*Subscription, error) {
	pubsub := s.client.Subscribe(ctx, s.channel)
	if _, err := pubsub.ReceiveTimeout(ctx, connectTimeout); err != nil {
		_ = pubsub.Close()
		return nil, err
	}
	return &Subscription{pubsub, pubsub.Channel()}, nil
}

// Close ends the subscription.
func (s *Subscription) Close() { _ = s.pubsub.Close() }

// Messages are the changes that come.
func (s *Subscription) Messages() <-chan Message { return s.messages }

// A Message is a change as it comes.
type Message = *redis.Message

var (
	errEnded    = errors.New("the subscription has ended")
	errNoChange = errors.New("another program writes to the channel of bans: give babelftp a database of its own")
)

// ParseChange reads a message: epoch, number, milliseconds, reason and name, by lines. Nil is the end of the subscription.
func ParseChange(m Message) (c Change, err error) {
	if m == nil {
		return Change{}, errEnded
	}
	const fields = 5
	f := strings.SplitN(m.Payload, "\n", fields)
	if len(f) < fields {
		return Change{}, errNoChange
	}
	number, errNumber := strconv.ParseInt(f[1], 10, 64)
	left, errLeft := milliseconds(f[2])
	if errNumber != nil || errLeft != nil {
		return Change{}, errNoChange
	}
	return Change{Version{f[0], number}, Ban{Name: f[4], Reason: f[3], Left: left}}, nil
}
