package audit

import (
	"bytes"
	"context"

	"github.com/babelftp/babelftp/internal/base/web"
)

// A receiver is the destination audit.webhook. Each Write posts complete lines as one JSON array. The receiver may get
// lines twice if its response is lost.
type receiver struct {
	ctx     context.Context // context of all requests
	webhook *web.Webhook
}

// Write posts lines once. [Writer] retries.
func (r *receiver) Write(lines []byte) (int, error) {
	objects := bytes.ReplaceAll(bytes.TrimSpace(lines), []byte("\n"), []byte(","))
	if err := r.webhook.Post(r.ctx, bytes.Join([][]byte{[]byte("["), objects, []byte("]")}, nil)); err != nil {
		return 0, err
	}
	return len(lines), nil
}
