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

// Files whose uploads are interrupted and resumed. They have more than one part.
const (
	keptSize  = 8 << 20 // without the bytes at the end, which only one client stores
	keptLeast = 1 << 10 // larger than any other file
	keptEnd   = "%02d-%02d:%d"
	keptWhole = keptSize + len("00-00:0")

	keptChecks = 8 // attempts while another session still holds the upload
	keptPause  = 150 * time.Millisecond
)

// A keeper is a pair of sessions of one user: the first uploads, and the second resumes. The user has no other
// sessions, because an unfinished upload is visible only to its user.
type keeper struct {
	first, second *client

	// head is the common beginning of all resumed files. Because of it, appending an end to an upload gives the
	// same file as writing that end into another client's file.
	head string

	sent map[string]int // maximum size of the unfinished upload in S3, by path
}

func (c *client) newKeeper() *keeper {
	user := fmt.Sprintf(c.team.Keeper, c.number)
	open := func() *client { return &client{team: c.team, number: c.number, user: user} }
	return &keeper{open(), open(), c.team.keptHead(), map[string]int{}}
}

func (k *keeper) hangUp() {
	k.first.hangUp()
	k.second.hangUp()
}

// keep starts an upload, interrupts it or leaves it slow, and resumes it in the second session. It records the
// commands that may have changed the file: the resumed upload, and the slow upload if it continues.
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
		_ = data.(*net.TCPConn).SetLinger(0) // a normal close would mark the end of the file, so reset
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

// resume waits for the unfinished upload to become visible and resumes it.
func (k *keeper) resume(
	ctx context.Context, random *rand.Rand, name, path string, number int, now func() time.Duration, recorded *recorder,
) error {
	c, dir := k.second, strings.TrimSuffix(path, "/"+name)
	for range keptChecks {
		if err := c.connect(ctx, random); err != nil {
			return err
		}
		check := Command{Verb: "SIZE", Name: name}
		_ = c.do(&check, dir, now)
		if size := int(check.Size); check.Code/100 == 2 && size >= keptLeast && size < keptWhole {
			if size >= k.sent[path] {
				return fmt.Errorf("an upload of %s shows %d bytes of %d", path, size, k.sent[path])
			}
			if size > keptSize { // the file includes the end of an upload that was already resumed
				return nil
			}
			k.sent[path] = keptWhole
			cmd := Command{Verb: "KEEP", Name: name, Offset: check.Size,
				Data: k.head + fmt.Sprintf(keptEnd, c.number, number, 2)}
			if err := c.do(&cmd, dir, now); !errors.Is(err, errNotSent) {
				recorded.add(cmd)
			}
			return nil
		}
		recorded.add(check)
		if err := pause(ctx, keptPause); err != nil {
			return err
		}
	}
	return nil
}
