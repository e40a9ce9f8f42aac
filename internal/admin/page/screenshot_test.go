package page_test

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"flag"
	"fmt"
	"hash/crc32"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"io"
	"maps"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	awss3 "github.com/aws/aws-sdk-go-v2/service/s3"
	"golang.org/x/text/language"

	"github.com/babelftp/babelftp/internal/config"
	"github.com/babelftp/babelftp/internal/config/value"
	"github.com/babelftp/babelftp/internal/server"
	"github.com/babelftp/babelftp/internal/testkit/certtest"
	"github.com/babelftp/babelftp/internal/testkit/configtest"
	"github.com/babelftp/babelftp/internal/testkit/ftptest"
	"github.com/babelftp/babelftp/internal/testkit/s3test"
)

var update = flag.Bool("update", false, "make the screenshot of the README, docs/images/admin.png")

// maxScreenshot is how many bytes the screenshot may have, so that a clone stays small.
const maxScreenshot = 150_000

// The README shows a screenshot of a real server. With -update the test makes it, which needs fonts for all scripts
// (Debian: fonts-noto-core and fonts-noto-cjk).
func TestScreenshot(t *testing.T) {
	name := filepath.Join(shared.root, "docs", "images", "admin.png")
	if *update {
		picture := makeScreenshot(t)
		if err := os.WriteFile(name, picture, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	picture, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := png.Decode(bytes.NewReader(picture)); err != nil {
		t.Error(err)
	}
	if len(picture) > maxScreenshot {
		t.Errorf("the screenshot has %d bytes, want %d at most", len(picture), maxScreenshot)
	}
	readme, err := os.ReadFile(filepath.Join(shared.root, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(readme), "](docs/images/admin.png)") {
		t.Error("the README does not show the screenshot")
	}
}

// makeScreenshot shows users of several languages, whose addresses a load balancer tells.
func makeScreenshot(t *testing.T) []byte {
	dir, s3 := t.TempDir(), s3test.Start(t, "embedded").Client()
	srv := start(t, func(cfg *config.Config) {
		cfg.TLS.CertFile, cfg.TLS.KeyFile = filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key")
		certtest.Write(
			t, cfg.TLS.CertFile, cfg.TLS.KeyFile,
			&x509.Certificate{DNSNames: []string{"ftp.example.com"}, NotAfter: time.Now().AddDate(0, 2, 0)})
		cfg.ProxyProtocol.Trusted = []value.Network{{Prefix: netip.MustParsePrefix("127.0.0.1/32")}}
		acme := cfg.Tenants["acme"]
		delete(cfg.Tenants, "acme")
		for name, tenant := range map[string]struct {
			language language.Tag
			quota    value.Size
			users    []string
		}{
			"atelier-lumiere": {language.French, 250_000_000, []string{"marie", "scanner-2"}},
			"sakura-photo":    {language.Japanese, 500_000_000, []string{"花子"}},
			"al-mashriq":      {language.Arabic, 0, []string{"فاطمة"}},
			"karpaty-print":   {language.Ukrainian, 0, []string{"олена"}},
			"old-archive":     {language.English, 0, []string{"ann"}},
		} {
			one := *acme
			one.Hosts, one.DefaultLanguage, one.Quota = []string{name + ".example.com"}, tenant.language, tenant.quota
			one.Bucket, one.Prefix = name, "ftp/"
			one.Users = map[string]*config.User{}
			for _, user := range tenant.users {
				one.Users[user] = &config.User{PasswordHash: configtest.PasswordHash()}
			}
			cfg.Tenants[name] = &one
		}
		for name := range cfg.Tenants {
			if name == "old-archive" {
				continue // its bucket is missing
			}
			if _, err := s3.CreateBucket(t.Context(), &awss3.CreateBucketInput{Bucket: &name}); err != nil {
				t.Fatal(err)
			}
		}
	})
	ban(t, srv, "198.51.100.23")
	ban(t, srv, "203.0.113.0/24")

	marie := visit(t, srv, "192.0.2.17", "marie@atelier-lumiere")
	marie.Command(200, "TYPE I")
	store(t, marie, "192.0.2.17", "scans-2025.zip", 90_000_000)
	hanako := visit(t, srv, "2001:db8:51::8", "花子@sakura-photo")
	store(t, hanako, "2001:db8:51::8", "photos.tar", 60_000_000)
	move(t, marie, "192.0.2.17", "/Numérisations/été-2026.tiff", 180_000_000, 64_000_000)
	move(t, hanako, "2001:db8:51::8", "/写真/京都の春.mov", 96_000_000, 81_000_000)
	fatima := visit(t, srv, "198.51.100.204", "فاطمة@al-mashriq")
	move(t, fatima, "198.51.100.204", "/تقارير/تقرير الربع الثالث.pdf", 48_000_000, 12_000_000)
	visit(t, srv, "192.0.2.44", "олена@karpaty-print")
	visit(t, srv, "192.0.2.90", "scanner-2@atelier-lumiere")

	tab := look(t, srv, "en-GB")
	tab.wait(row("tenants", "Unreachable"))
	tab.wait(cell("transfers", "été-2026", "speed") + `.includes('MB')`)
	tab.wait(cell("transfers", "京都の春", "speed") + `.includes('MB')`)
	tab.wait(cell("tenants", "sakura", "quota") + `.includes('of')`)
	tab.resize(1120, 940)
	eval[any](tab, `scrollTo(0, 0)`)
	return shrink(t, tab.screenshot(object{"format": "png"}))
}

// shrink gives a picture the colours that it has most of, which makes its file a third as large.
func shrink(t *testing.T, picture []byte) []byte {
	t.Helper()
	from, err := png.Decode(bytes.NewReader(picture))
	if err != nil {
		t.Fatal(err)
	}
	count := map[color.Color]int{}
	for y := range from.Bounds().Dy() {
		for x := range from.Bounds().Dx() {
			count[from.At(x, y)]++
		}
	}
	const enough = 256
	colours := slices.SortedFunc(maps.Keys(count), func(a, b color.Color) int { return count[b] - count[a] })
	to := image.NewPaletted(from.Bounds(), colours[:min(enough, len(colours))])
	draw.Draw(to, to.Bounds(), from, image.Point{}, draw.Src)
	var small bytes.Buffer
	if err := (&png.Encoder{CompressionLevel: png.BestCompression}).Encode(&small, to); err != nil {
		t.Fatal(err)
	}
	return small.Bytes()
}

// header is what a load balancer says of a client (PROXY protocol, version 1). The port looks like any other.
func header(from string) string {
	port := 49152 + crc32.ChecksumIEEE([]byte(from))%16384
	if strings.Contains(from, ":") {
		return fmt.Sprintf("PROXY TCP6 %s 2001:db8::21 %d 21\r\n", from, port)
	}
	return fmt.Sprintf("PROXY TCP4 %s 192.0.2.1 %d 21\r\n", from, port)
}

// visit logs in under TLS.
func visit(t *testing.T, srv *server.Server, from, user string) *ftptest.Client {
	t.Helper()
	conn, err := net.Dial("tcp", srv.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	if _, err := io.WriteString(conn, header(from)); err != nil {
		t.Fatal(err)
	}
	c := ftptest.New(t, conn)
	c.Reply(220)
	c.Command(234, "AUTH TLS")
	if err := c.StartTLS(&tls.Config{InsecureSkipVerify: true}); err != nil {
		t.Fatal(err)
	}
	c.Login(user, configtest.Password)
	c.Command(200, "TYPE I")
	return c
}

// data opens a data connection.
func data(t *testing.T, c *ftptest.Client, from string) net.Conn {
	t.Helper()
	address, err := c.Passive()
	if err != nil {
		t.Fatal(err)
	}
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	if _, err := io.WriteString(conn, header(from)); err != nil {
		t.Fatal(err)
	}
	return conn
}

// store uploads so many bytes.
func store(t *testing.T, c *ftptest.Client, from, name string, bytes int) {
	t.Helper()
	conn := data(t, c, from)
	c.Command(150, "STOR "+name)
	if _, err := conn.Write(make([]byte, bytes)); err != nil {
		t.Fatal(err)
	}
	_ = conn.Close()
	c.Reply(226)
}

// move uploads a part of a file, and goes on slowly until the end of the test.
func move(t *testing.T, c *ftptest.Client, from, name string, size, part int) {
	t.Helper()
	_, _ = c.Send("MKD " + name[:strings.LastIndex(name, "/")])
	c.Command(200, fmt.Sprintf("ALLO %d", size))
	conn := data(t, c, from)
	c.Command(150, "STOR "+name)
	if _, err := conn.Write(make([]byte, part)); err != nil {
		t.Fatal(err)
	}
	go func() {
		ticker := time.NewTicker(100 * time.Millisecond) // the speed of this client
		defer ticker.Stop()
		for range ticker.C {
			if _, err := conn.Write(make([]byte, size/400)); err != nil {
				return
			}
		}
	}()
}
