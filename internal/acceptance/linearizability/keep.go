package linearizability

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"strconv"
	"strings"
	"time"
)

// What is uploaded, interrupted and resumed. It has more than one part.
const (
	keptSize  = 8 << 20 // without the bytes at its end that only one client stores
	keptLeast = 1 << 10 // more than any other file has
	keptEnd   = "%02d-%02d:%d"
	keptWhole = keptSize + len("00-00:0")

	keptLooks = 8 // at an upload that another session still has
	keptPause = 150 * time.Millisecond
)

// A keeper is two sessions of one user, who uploads in the one and resumes in the other. The user has no other
// sessions, because only they see the upload.
type keeper struct {
	first, second *client

	// head is what all files begin with that are resumed. So a file is the same whether its end was added to an
	// upload or written into a file of another client.
	head string

	sent map[string]int // the most bytes of an upload that S3 may have, by path
}

// newKeeper returns the keeper that belongs to a client.
func (c *client) newKeeper() *keeper {
	user := fmt.Sprintf(c.team.Keeper, c.number)
	open := func() *client { return &client{team: c.team, number: c.number, user: user} }
	return &keeper{open(), open(), c.team.keptHead(), map[string]int{}}
}

func (k *keeper) hangUp() {
	k.first.hangUp()
	k.second.hangUp()
}

// keep uploads a file, is interrupted or only slow, and resumes the upload in another session. It records what may
// have changed the file: the resumed upload, and the slow one, which goes on.
func (k *keeper) keep(
	ctx context.Context, random *rand.Rand, name, dir string, number int, now func() time.Duration, recorded *recorder,
) error {
	if err := errors.Join(k.first.connect(ctx, random), k.second.connect(ctx, random)); err != nil {
		return err
	}
	path := dir + "/" + name
	slow := Command{Verb: "STOR", Name: name, Data: k.head + fmt.Sprintf(keptEnd, k.first.number, number, 1)}
	sent := keptSize - random.IntN(1<<20)
	k.sent[path] = max(k.sent[path], sent)
	data, err := k.first.begin(&slow, path, now)
	if err != nil || data == nil {
		recorded.add(slow)
		k.first.hangUp()
		return nil
	}
	defer data.Close()
	if _, err := io.WriteString(data, slow.Data[:sent]); err != nil {
		slow.Code, slow.Return = 0, now()
		recorded.add(slow)
		k.first.hangUp()
		return nil
	}
	interrupted := random.IntN(2) == 0
	if interrupted {
		_ = data.(*net.TCPConn).SetLinger(0) // the end is a reset, so that it does not look like that of a file
		_ = data.Close()
		if code, err := reply(k.first.conn.Reply()); err != nil {
			k.first.hangUp()
		} else if code/100 == 2 {
			return fmt.Errorf("reply %d to an upload of %s that was interrupted", code, path)
		}
	}
	if err := k.resume(ctx, random, name, path, number, now, recorded); err != nil || interrupted {
		return err
	}
	k.first.end(&slow, data, slow.Data[sent:], now)
	recorded.add(slow)
	return nil
}

// resume looks for the upload and resumes it.
func (k *keeper) resume(
	ctx context.Context, random *rand.Rand, name, path string, number int, now func() time.Duration, recorded *recorder,
) error {
	c := k.second
	for range keptLooks {
		if err := c.connect(ctx, random); err != nil {
			return err
		}
		look := Command{Verb: "SIZE", Name: name}
		_ = c.do(&look, strings.TrimSuffix(path, "/"+name), now)
		if size := int(look.Size); look.Code/100 == 2 && size >= keptLeast && size < keptWhole {
			if size >= k.sent[path] {
				return fmt.Errorf("an upload of %s shows %d bytes of %d", path, size, k.sent[path])
			}
			if size > keptSize { // its end is of an upload that was resumed before
				return nil
			}
			k.sent[path] = keptWhole
			c.add(
				look.Size, Command{Verb: "KEEP", Name: name, Data: k.head + fmt.Sprintf(keptEnd, c.number, number, 2)},
				path, now, recorded)
			return nil
		}
		recorded.add(look)
		if err := pause(ctx, keptPause); err != nil {
			return err
		}
	}
	return nil
}

// add resumes an upload at an offset.
func (c *client) add(offset int64, cmd Command, path string, now func() time.Duration, recorded *recorder) {
	cmd.Client, cmd.Replica, cmd.Offset = c.number, c.replica, offset
	defer func() {
		if cmd.Code == 0 || cmd.Code == 421 {
			c.hangUp()
		}
	}()
	data, err := c.begin(&cmd, path, now)
	if err == nil && data != nil {
		defer data.Close()
		c.end(&cmd, data, cmd.Data[offset:], now)
	}
	recorded.add(cmd)
}

// begin sends STOR. It returns no data connection where the server does not want one.
func (c *client) begin(cmd *Command, path string, now func() time.Duration) (net.Conn, error) {
	cmd.Client, cmd.Replica = c.number, c.replica
	cmd.Call = now()
	data, err := c.conn.Data()
	if err == nil && cmd.Offset > 0 {
		_, err = c.conn.Send("REST " + strconv.FormatInt(cmd.Offset, 10))
	}
	if err == nil {
		cmd.Code, err = reply(c.conn.Send("STOR " + path))
	}
	cmd.Return = now()
	if err == nil && cmd.Code/100 == 1 {
		cmd.Code = 0
		return data, nil
	}
	if data != nil {
		_ = data.Close()
	}
	return nil, err
}

// end sends the last bytes of an upload.
func (c *client) end(cmd *Command, data net.Conn, rest string, now func() time.Duration) {
	_, err := io.WriteString(data, rest)
	if err == nil {
		err = data.Close()
	}
	if err == nil {
		cmd.Code, err = reply(c.conn.Reply())
	}
	cmd.Return = now()
	if err != nil {
		c.hangUp()
	}
}
