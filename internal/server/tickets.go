package server

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"slices"
	"time"

	"github.com/babelftp/babelftp/internal/storage/state"
)

const (
	// ticketKeysItem is the name of the shared item with the keys of TLS session tickets.
	ticketKeysItem = "tls/ticket-keys"
	// ticketKeyAge is the age at which a key is replaced, and ticketKeyLifetime the time for which tickets can be used.
	// crypto/tls uses the same times for its own keys.
	ticketKeyAge, ticketKeyLifetime = 24 * time.Hour, 7 * 24 * time.Hour
	// ticketKeyDelay is the time until a new key is used, so that all replicas know it by then.
	ticketKeyDelay = time.Minute
	// ticketKeyInterval is the time between two checks of the keys.
	ticketKeyInterval = 30 * time.Second
)

// ticketKeys are the keys of TLS session tickets, the oldest first.
type ticketKeys []ticketKey

type ticketKey struct {
	Key  [32]byte  `json:"key"`
	From time.Time `json:"from"` // when it begins to encrypt
}

// rotated returns the keys with a new one if the last one is too old, and without those that no valid ticket was
// encrypted with.
func (k ticketKeys) rotated(now time.Time) ticketKeys {
	k = slices.DeleteFunc(slices.Clone(k), func(key ticketKey) bool {
		return now.Sub(key.From) >= ticketKeyAge+ticketKeyLifetime
	})
	if len(k) > 0 && now.Sub(k[len(k)-1].From) < ticketKeyAge {
		return k
	}
	next := ticketKey{From: now.Add(ticketKeyDelay)}
	if len(k) == 0 {
		next.From = now
	}
	_, _ = rand.Read(next.Key[:]) // never returns an error
	return append(k, next)
}

// current returns the keys in the order for [certs.Set.SetTicketKeys]: first the last one that is in use already, then
// the earlier ones, and those that will be used soon.
func (k ticketKeys) current(now time.Time) [][32]byte {
	var used, soon [][32]byte
	for _, key := range slices.Backward(k) {
		if key.From.After(now) {
			soon = append(soon, key.Key)
		} else {
			used = append(used, key.Key)
		}
	}
	return append(used, soon...)
}

// shareTickets keeps the keys of all replicas equal until ctx ends.
func (s *sharedState) shareTickets(ctx context.Context, use func(keys [][32]byte)) {
	changed := make(chan struct{}, 1)
	s.store.Watch(ticketKeysItem, func([]state.Change) {
		select {
		case changed <- struct{}{}:
		default:
		}
	})
	ticker := time.NewTicker(ticketKeyInterval)
	defer ticker.Stop()
	for {
		text, _ := s.store.Get(ticketKeysItem)
		var keys ticketKeys
		if json.Unmarshal(text, &keys) == nil && len(keys) > 0 {
			use(keys.current(time.Now()))
		}
		if !slices.Equal(keys.rotated(time.Now()), keys) {
			s.rotateTicketKeys(ctx)
		}
		select {
		case <-changed:
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
	}
}

// rotateTicketKeys adds a new key, unless another replica has done so. Errors are ignored, because the next check tries
// again; the store logs that S3 is not available.
func (s *sharedState) rotateTicketKeys(ctx context.Context) {
	_ = s.store.Update(ctx, ticketKeysItem, func(text []byte) ([]byte, error) {
		var keys ticketKeys
		if json.Unmarshal(text, &keys) != nil {
			keys = nil // there are no keys yet
		}
		return json.Marshal(keys.rotated(time.Now()))
	})
}
