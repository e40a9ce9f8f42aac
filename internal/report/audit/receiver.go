package audit

import (
	"bytes"
	"context"

	"github.com/babelftp/babelftp/internal/base/web"
)

// A receiver is the destination of audit.webhook: each Write posts complete lines, of which each is a JSON object, as
// one array. A receiver may get lines twice, if its answer was lost.
type receiver struct {
	ctx     context.Context // of all posts
	webhook *web.Webhook
}

// Write posts lines once. A [Writer] tries again.
func (r *receiver) Write(lines []byte) (int, error) {
	objects := bytes.ReplaceAll(bytes.TrimSpace(lines), []byte("\n"), []byte(","))
	if err := r.webhook.Post(r.ctx, bytes.Join([][]byte{[]byte("["), objects, []byte("]")}, nil)); err != nil {
		return 0, err
	}
	return len(lines), nil
}
