package acceptance_test

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/babelftp/babelftp/internal/testkit/certtest"
	"github.com/babelftp/babelftp/internal/testkit/configtest"
	"github.com/babelftp/babelftp/internal/testkit/ftptest"
	"github.com/babelftp/babelftp/internal/testkit/s3test"
)

// These are attacks of strangers at logins, and of users who have a right password at the logins of others.

// newSiteWithLimits is a site with other limits of the server.
func newSiteWithLimits(t *testing.T, limits string, lines ...string) *site {
	t.Helper()
	storage := s3test.Start(t, "minio")
	s := &site{storage: storage, client: storage.Client(),
		buckets: map[string]string{acme: storage.Bucket(t), umbrella: storage.Bucket(t)}}
	file := s.configure(t, lines...)
	replaceIn(
		t, file, "limits: {sessions_per_address: 0, login_timeout: 5m",
		"limits: {sessions_per_address: 0, login_timeout: 5m, "+limits)
	s.start(t, file)
	return s
}

// guess tries a password in a session of its own, and returns the code of the reply.
func (s *site) guess(t *testing.T, user, password string) (code int) {
	t.Helper()
	c := ftptest.Dial(t, s.address)
	defer c.Close()
	c.Command(331, "USER "+user)
	reply, err := c.Send("PASS " + password)
	if err != nil {
		t.Fatal(err)
	}
	code, _ = ftptest.Parse(reply)
	return code
}

// TestCostOfRefusals compares what refused logins cost where the hashes of users are of several kinds, as after an
// import.
func TestCostOfRefusals(t *testing.T) {
	t.Parallel()
	s := newSiteWithLimits(t, "failed_login_delay: 0s",
		`      sha: {password_hash: "$6$saltsaltsalt$Cy2drr8kDRji6smvDcT28wkqtq0R0VzVL5CkrjPQCITc5d/31j94knt9rGTcVSyjLXfjsiIsBh5ee8qR/3QDx1"}`,
		`      bcrypt: {password_hash: "$2y$05$abcdefghijklmnopqrstuuHNbAKRhpaujgo33bRWs.NLUTJO3lOy2"}`,
	)
	const repeated = 8
	costs := map[string]float64{}
	for _, user := range []string{"sha@acme", "bcrypt@acme", "alice@acme", "nobody@acme", "sha", "nobody"} {
		before := s.metric(t, "process_cpu_seconds_total")
		for range repeated {
			if code := s.guess(t, user, "wrong"); code != 530 {
				t.Fatalf("%s: %d", user, code)
			}
		}
		costs[user] = s.metric(t, "process_cpu_seconds_total") - before
	}
	t.Logf("seconds of CPU: %v", costs)
	least, most := costs["nobody"], costs["nobody"]
	for _, cost := range costs {
		least, most = min(least, cost), max(most, cost)
	}
	if most > 2.5*least { // a comparison with one kind costs ten times as much as with another
		t.Errorf("refusals cost so many seconds of CPU: %v", costs)
	}
}

// TestNamesAreNotToldByBans guesses at a user and at a name that no one has until they are banned. By which other
// spellings they are banned too tells no more.
func TestNamesAreNotToldByBans(t *testing.T) {
	t.Parallel()
	const score = 3
	s := newSiteWithLimits(
		t, fmt.Sprintf("failed_login_delay: 0s, bans: {user_score: %d, half_life: 24h}", score), mallory(),
		strings.Replace(mallory(), "mallory", "m\u00e1lloryx", 1))
	answers := func(name string) (codes []int) {
		for range score {
			codes = append(codes, s.guess(t, name+"@acme", "wrong"))
		}
		for _, spelling := range []string{name, name + "@acme", name + "@umbrella", name + "@", strings.ToUpper(name)} {
			codes = append(codes, s.guess(t, spelling, "wrong"))
		}
		composed := strings.Replace(name, "a", "\u00e1", 1)
		for range score {
			codes = append(codes, s.guess(t, composed+"x", "wrong"))
		}
		return append(codes, s.guess(t, strings.Replace(name, "a", "a\u0301", 1)+"x", "wrong"))
	}
	if known, unknown := answers("mallory"),
		answers("nallory"); !slices.Equal(known, unknown) || !slices.Contains(known, 421) {
		t.Errorf("the spellings of a user are answered by %v, those of another name by %v", known, unknown)
	}
}

// TestGuessesBetweenLogins guesses at another user, and logs in after each guess. The guesses wait as they do without
// that.
func TestGuessesBetweenLogins(t *testing.T) {
	t.Parallel()
	s := newSite(t, s3test.Start(t, "minio"), mallory())
	const guesses = 6
	began := time.Now()
	for range guesses {
		if code := s.guess(t, "alice@acme", "wrong"); code != 530 {
			t.Fatalf("a guess is answered by %d", code)
		}
		if code := s.guess(t, "mallory@acme", configtest.Password); code != 230 {
			t.Fatalf("a right password is answered by %d", code)
		}
	}
	const least = (250 + 500 + 1000 + 2000 + 4000) * time.Millisecond * 9 / 10 // failures are forgotten slowly
	if took := time.Since(began); took < least {
		t.Errorf("%d guesses took %v, want %v or more", guesses, took, least)
	}
}

// TestLargeClientCertificates: a stranger who shows many certificates, or one with many names, gets no session that
// keeps them.
func TestLargeClientCertificates(t *testing.T) {
	t.Parallel()
	authority := certtest.NewAuthority(t, "stranger")
	ca := filepath.Join(t.TempDir(), "ca.crt")
	if err := os.WriteFile(ca, []byte(certtest.NewAuthority(t, "ours").Certificate), 0o600); err != nil {
		t.Fatal(err)
	}
	s := newSite(t, s3test.Start(t, "minio"), "    tls: {client_certificates: {ca_file: "+strconv.Quote(ca)+"}}")
	links := make([]*url.URL, 1000)
	for i := range links {
		links[i] = &url.URL{Scheme: "a", Host: "b"}
	}
	for name, tc := range map[string]struct {
		template x509.Certificate
		between  int
		admitted bool
	}{
		"usual":      {x509.Certificate{}, 2, true},
		"many":       {x509.Certificate{}, 100, false},
		"many-names": {x509.Certificate{URIs: links}, 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			certificate, key := authority.Issue(&tc.template)
			pair, err := tls.X509KeyPair(
				[]byte(certificate+strings.Repeat(authority.Certificate, tc.between)), []byte(key))
			if err != nil {
				t.Fatal(err)
			}
			// any server will do
			conn, err := tls.Dial(
				"tcp", s.implicit, &tls.Config{Certificates: []tls.Certificate{pair}, InsecureSkipVerify: true})
			reply := ""
			if err == nil {
				defer conn.Close()
				reply, err = ftptest.NewConn(conn).Reply()
			}
			if admitted := err == nil && strings.HasPrefix(reply, "220"); admitted != tc.admitted {
				t.Errorf("the session begins with %q, %v", reply, err)
			}
		})
	}
}
