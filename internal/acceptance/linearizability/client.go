package linearizability

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/babelftp/babelftp/internal/testkit/ftptest"
)

const (
	// patience limits the wait for a reply. After that the client hangs up, and the command it sent may take effect at
	// any later time.
	patience = 15 * time.Second

	// connectTime limits the time for connecting. A replica that was killed restarts within this time.
	connectTime = 2 * time.Minute

	// connectPause is the time between two attempts.
	connectPause = 100 * time.Millisecond
)

// A client holds a session with one replica and keeps it from one history to the next.
type client struct {
	team    *Team
	number  int
	user    string
	keeper  *keeper // nil if the team resumes no uploads
	replica int
	conn    *ftptest.Conn // nil without a session
}

// errNotSent means that the command did not reach the server and therefore has no effect.
var errNotSent = errors.New("not sent")

// hangUp closes the session, if the client has one.
func (c *client) hangUp() {
	if c.conn != nil {
		_ = c.conn.Close()
		c.conn = nil
	}
}

// connect opens a session with a random replica unless the client already has one.
func (c *client) connect(ctx context.Context, random *rand.Rand) error {
	deadline := time.Now().Add(connectTime)
	var err error
	for c.conn == nil {
		if time.Now().After(deadline) {
			return fmt.Errorf("client %d cannot connect: %w", c.number, err)
		}
		c.replica = random.IntN(len(c.team.Replicas))
		if err = c.open(); err != nil {
			if err := pause(ctx, connectPause); err != nil {
				return err
			}
		}
	}
	return nil
}

// open connects to the client's replica and logs in.
func (c *client) open() error {
	conn, err := ftptest.Open(c.team.Replicas[c.replica]())
	if err != nil {
		return err
	}
	conn.Timeout = patience
	code, err := reply(conn.Reply())
	for _, line := range []string{"USER " + c.user, "PASS " + c.team.Password, "TYPE I"} {
		if err == nil && code < 400 {
			code, err = reply(conn.Send(line))
		}
	}
	if err == nil && code >= 400 {
		err = fmt.Errorf("login: reply %d", code)
	}
	if err != nil {
		_ = conn.Close()
		return err
	}
	c.conn = conn
	return nil
}

// reply returns the code of an FTP reply.
func reply(text string, err error) (int, error) {
	if err != nil {
		return 0, err
	}
	code, _ := ftptest.Parse(text)
	return code, nil
}

// do sends a command and records the reply in cmd. It returns errNotSent if the command did not reach the server.
func (c *client) do(cmd *Command, dir string, now func() time.Duration) error {
	cmd.Client, cmd.Replica = c.number, c.replica
	err := c.send(cmd, dir, now)
	cmd.Return = now()
	if err != nil || cmd.Code == 421 {
		c.hangUp()
	}
	return err
}

// elsewhere is the prefix of names whose files are in another bucket.
const elsewhere = "elsewhere/"

// place returns the pathname of a name in the directory dir.
func place(dir, name string) string {
	if name, away := strings.CutPrefix(name, elsewhere); away {
		return "/" + elsewhere + strings.TrimPrefix(dir, "/") + "/" + name
	}
	return dir + "/" + name
}

func (c *client) send(cmd *Command, dir string, now func() time.Duration) (err error) {
	path := place(dir, cmd.Name)
	switch cmd.Verb {
	case "STOR", "REST":
		return c.upload(cmd, "STOR "+path, cmd.Data, now)
	case "KEEP":
		return c.upload(cmd, "STOR "+path, cmd.Data[cmd.Offset:], now)
	case "APPE":
		return c.upload(cmd, "APPE "+path, cmd.Data, now)
	case "RETR":
		cmd.Got, err = c.download(cmd, "RETR "+path, now)
		return err
	case "MLSD":
		text, err := c.download(cmd, "MLSD "+strings.TrimSuffix(path, "/"), now)
		cmd.Listing = sizesIn(text, cmd.Name)
		return err
	case "RNTO":
		cmd.Call = now()
		if cmd.Code, err = reply(c.conn.Send("RNFR " + path)); err != nil || cmd.Code != 350 {
			cmd.Verb = "RNFR"
			return err
		}
		cmd.Call = now()
		cmd.Code, err = reply(c.conn.Send("RNTO " + place(dir, cmd.To)))
		return err
	}
	cmd.Call = now()
	text, err := c.conn.Send(cmd.Verb + " " + strings.TrimSuffix(path, "/"))
	if cmd.Code, err = reply(text, err); err != nil || cmd.Code/100 != 2 {
		return err
	}
	switch cmd.Verb {
	case "SIZE":
		if cmd.Size, err = sizeOf(sizeReply, text); err != nil {
			return err
		}
	case "MLST":
		if cmd.Size, err = sizeOf(fact, text); err != nil {
			return err
		}
	}
	return nil
}

// begin opens a data connection, sends REST if the command has an offset, and then sends the command line. It
// returns a nil connection if the server refuses the transfer, and errNotSent if the line did not reach the server.
func (c *client) begin(cmd *Command, line string, now func() time.Duration) (net.Conn, error) {
	cmd.Client, cmd.Replica = c.number, c.replica
	data, err := c.conn.Data()
	if err != nil {
		return nil, errors.Join(errNotSent, err)
	}
	if cmd.Verb == "REST" || cmd.Verb == "KEEP" {
		code, err := reply(c.conn.Send("REST " + strconv.FormatInt(cmd.Offset, 10)))
		if err != nil || code != 350 {
			_ = data.Close()
			return nil, errors.Join(errNotSent, err)
		}
	}
	cmd.Call = now()
	if cmd.Code, err = reply(c.conn.Send(line)); err != nil || cmd.Code/100 != 1 {
		_ = data.Close()
		return nil, err
	}
	cmd.Code = 0
	return data, nil
}

// upload sends a command that stores a file, followed by the content.
func (c *client) upload(cmd *Command, line, content string, now func() time.Duration) error {
	data, err := c.begin(cmd, line, now)
	if data == nil {
		return err
	}
	return c.end(cmd, data, content)
}

// end sends the rest of an upload, closes the data connection and reads the final reply.
func (c *client) end(cmd *Command, data net.Conn, rest string) error {
	defer data.Close()
	if _, err := io.WriteString(data, rest); err != nil {
		return err
	}
	if err := data.Close(); err != nil {
		return err
	}
	var err error
	cmd.Code, err = reply(c.conn.Reply())
	return err
}

// download runs RETR or MLSD. It returns no data after an error.
func (c *client) download(cmd *Command, line string, now func() time.Duration) (string, error) {
	data, err := c.begin(cmd, line, now)
	if data == nil {
		return "", err
	}
	defer data.Close()
	text, err := io.ReadAll(data)
	if err != nil {
		return "", err
	}
	cmd.Code, err = reply(c.conn.Reply())
	return string(text), err
}

// Patterns for sizes in replies to SIZE and MLST, and for lines of MLSD.
var (
	sizeReply = regexp.MustCompile(`^213()() (\d+)`)
	fact      = regexp.MustCompile(`(?mi)^ ?(?:[^ ]*;)?type=(file);(?:[^ ]*;)?(size=(\d+);)`)
	line      = regexp.MustCompile(`(?i)^(?:[^ ]*;)?type=(file|dir);[^ ]* (.*)$`)
)

// sizeOf parses the size in the third group of pattern.
func sizeOf(pattern *regexp.Regexp, text string) (int64, error) {
	m := pattern.FindStringSubmatch(text)
	if m == nil {
		return 0, fmt.Errorf("no size in %q", text)
	}
	return strconv.ParseInt(m[3], 10, 64)
}

// sizesIn returns the files and directories in an MLSD listing of directory.
func sizesIn(text, directory string) map[string]int64 {
	sizes := map[string]int64{}
	for entry := range strings.Lines(text) {
		entry = strings.TrimRight(entry, "\r\n")
		m := line.FindStringSubmatch(entry)
		switch {
		case m == nil:
		case strings.EqualFold(m[1], "dir"):
			sizes[directory+m[2]+"/"] = 0
		default:
			size, err := sizeOf(fact, entry)
			if err != nil {
				size = -1 // no file has this size
			}
			sizes[directory+m[2]] = size
		}
	}
	return sizes
}

// pause waits for d or until ctx is done.
func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
