package s3api

import (
	"context"
)

// Slots bound the requests of an operation on a directory: one for each that may be under way at the same time.
type Slots chan struct{}

// Limited returns a client that waits for a slot before each request.
func Limited(client Client, slots Slots) Client {
	return Intercept(client, func(ctx context.Context, _ any, send func() (any, error)) error {
		select {
		case slots <- struct{}{}:
		case <-ctx.Done():
			return ctx.Err()
		}
		defer func() { <-slots }()
		_, err := send()
		return err
	})
}
