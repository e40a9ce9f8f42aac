package admin

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/babelftp/babelftp/internal/doctor"
	"github.com/babelftp/babelftp/internal/report/sessionlog"
)

// maxLog is how many bytes of lines a [LogTail] keeps.
const maxLog = 4 << 20

// A LogTail keeps the last lines of a log that are about clients: from 2 to 4 MiB. The zero value has none. Its methods
// may be called by any goroutine.
type LogTail struct {
	mu           sync.Mutex
	before, last []byte // half of the bound each; what was written stays as it is, so readers need no copy
}

// Write keeps a line of either format.
func (t *LogTail) Write(line []byte) (int, error) {
	if bytes.Contains(line, []byte("remote")) && len(line) < maxLog/2 {
		t.mu.Lock()
		defer t.mu.Unlock()
		if len(t.last)+len(line) > maxLog/2 {
			t.before, t.last = t.last, nil
		}
		t.last = append(t.last, line...)
	}
	return len(line), nil
}

// reader reads the lines, the oldest first.
func (t *LogTail) reader() io.Reader {
	t.mu.Lock()
	defer t.mu.Unlock()
	return io.MultiReader(bytes.NewReader(t.before), bytes.NewReader(t.last))
}

// findings answers with what the log tells about clients. One request after the other reads it, in bounded memory.
func (h *Handler) findings(r *http.Request) (any, error) {
	since, err := time.ParseDuration(r.FormValue("since"))
	if err != nil || since <= 0 {
		return nil, &Error{http.StatusBadRequest, "since is no time longer than 0, such as 2h"}
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
