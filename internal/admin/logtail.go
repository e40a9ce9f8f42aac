package admin

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"time"

	"github.com/babelftp/babelftp/internal/base/limits"
	"github.com/babelftp/babelftp/internal/doctor"
	"github.com/babelftp/babelftp/internal/report"
	"github.com/babelftp/babelftp/internal/report/sessionlog"
)

// maxLog limits the bytes of the lines that a [LogTail] keeps.
const maxLog = 4 << 20

// A LogTail keeps the latest log lines about clients, up to 4 MiB. Each client address gets a share, so that
// a noisy client cannot evict the lines about others. Its methods are safe for concurrent use.
type LogTail struct{ ring *report.Ring }

// NewLogTail returns an empty LogTail.
func NewLogTail() *LogTail { return &LogTail{report.NewRing(maxLog)} }

// Write adds a line in text or JSON format.
func (t *LogTail) Write(line []byte) (int, error) {
	if address := addressIn(line); address != "" {
		t.ring.Add(address, line)
	}
	return len(line), nil
}

// addressIn returns the network of the client that a line is about, or an empty string. The size of a network
// is the same as for bans.
func addressIn(line []byte) string {
	for _, key := range []string{"remote=", `"remote":`} {
		_, value, found := bytes.Cut(line, []byte(key))
		if !found {
			continue
		}
		value = bytes.TrimPrefix(value, []byte(`"`))
		if end := bytes.IndexAny(value, "\" \n"); end >= 0 {
			value = value[:end]
		}
		if remote, err := netip.ParseAddrPort(string(value)); err == nil {
			return limits.Network(remote.Addr()).String()
		}
		return string(value)
	}
	return ""
}

// reader returns a reader of the lines, oldest first.
func (t *LogTail) reader() io.Reader { return bytes.NewReader(bytes.Join(t.ring.Lines(), nil)) }

// findings responds with the problems that the log shows for a client. The mutex allows one reader at a time,
// which bounds the memory.
func (h *Handler) findings(r *http.Request) ([]doctor.Finding, error) {
	since, err := time.ParseDuration(r.FormValue("since"))
	if err != nil || since <= 0 {
		return nil, &Error{http.StatusBadRequest, fmt.Sprintf("invalid since %q: want a time longer than 0, such as 2h", r.FormValue("since"))}
	}
	network, err := sessionlog.ParseNetwork(r.FormValue("address"))
	if err != nil {
		return nil, &Error{http.StatusBadRequest, err.Error()}
	}
	h.reading.Lock()
	defer h.reading.Unlock()
	filter := doctor.Filter{Network: network, Since: time.Now().Add(-since)}
	found, err := doctor.ReadLog(r.Context(), h.Tail.reader(), filter)
	if errors.Is(err, doctor.ErrNoLog) {
		return nil, &Error{http.StatusNotFound, fmt.Sprintf("this replica has logged no line about %s in the last %s: "+
			"the client came to another one, or log.level leaves its lines out", r.FormValue("address"), since)}
	}
	if err != nil {
		return nil, err
	}
	b := h.Bundle()
	return found.Shown(b.Localizer(chosen(b, r)).Text), nil
}
