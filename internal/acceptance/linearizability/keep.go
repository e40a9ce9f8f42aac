package linearizability

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
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
	data, err := k.first.begin(&slow, "STOR "+path, now)
	if data == nil {
		if slow.Return = now(); !errors.Is(err, errNotSent) {
			recorded.add(slow)
		}
		k.first.hangUp()
		return nil
	}
	defer data.Close()
	if _, err := io.WriteString(data, slow.Data[:sent]); err != nil {
		slow.Return = now()
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
	if err := k.first.end(&slow, data, slow.Data[sent:]); err != nil {
		k.first.hangUp()
	}
	slow.Return = now()
	recorded.add(slow)
	return nil
}

// resume looks for the upload and resumes it.
func (k *keeper) resume(
	ctx context.Context, random *rand.Rand, name, path string, number int, now func() time.Duration, recorded *recorder,
) error {
	c, dir := k.second, strings.TrimSuffix(path, "/"+name)
	for range keptLooks {
		if err := c.connect(ctx, random); err != nil {
			return err
		}
		look := Command{Verb: "SIZE", Name: name}
		_ = c.do(&look, dir, now)
		if size := int(look.Size); look.Code/100 == 2 && size >= keptLeast && size < keptWhole {
			if size >= k.sent[path] {
				return fmt.Errorf("an upload of %s shows %d bytes of %d", path, size, k.sent[path])
			}
			if size > keptSize { // its end is of an upload that was resumed before
				return nil
			}
			k.sent[path] = keptWhole
			cmd := Command{Verb: "KEEP", Name: name, Offset: look.Size,
				Data: k.head + fmt.Sprintf(keptEnd, c.number, number, 2)}
			if err := c.do(&cmd, dir, now); !errors.Is(err, errNotSent) {
				recorded.add(cmd)
			}
			return nil
		}
		recorded.add(look)
		if err := pause(ctx, keptPause); err != nil {
			return err
		}
	}
	return nil
}
