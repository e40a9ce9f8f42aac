package linearizability

import (
	"testing"
	"time"
)

// passed returns a request of a replica to the S3 server. For a copy, name is the target.
func passed(began, ended int, replica int, kind, name string) passage {
	return passage{request{kind: kind, keys: []string{"history-1-1/" + name}}, replica, time.Duration(began),
		time.Duration(ended)}
}

// The rename from a to b runs from 5 to 50 on replica 0.
func TestExcuse(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		code   int
		passed []passage
		blind  bool
		looked time.Duration
	}{
		{"nothing", 250, nil, false, 0},
		{"check-before-the-delete", 250, []passage{
			passed(6, 7, 0, "HeadObject", "a"), passed(8, 9, 0, "CopyObject", "b"), passed(10, 11, 0, "HeadObject", "a"),
			passed(12, 13, 0, "DeleteObject", "a"),
		}, true, 10},
		{"check-before-the-copy-only", 250, []passage{
			passed(6, 7, 0, "HeadObject", "a"), passed(8, 9, 0, "CopyObject", "b"), passed(12, 13, 0, "DeleteObject", "a"),
		}, false, 0},
		{"check-of-another-replica", 250, []passage{
			passed(8, 9, 0, "CopyObject", "b"), passed(10, 11, 1, "HeadObject", "a"), passed(12, 13, 0, "DeleteObject", "a"),
		}, false, 0},
		{"delete-of-another-replica", 250, []passage{
			passed(8, 9, 0, "CopyObject", "b"), passed(10, 11, 0, "HeadObject", "a"), passed(12, 13, 1, "DeleteObject", "a"),
		}, false, 0},
		{"earliest-of-two-checks", 250, []passage{
			passed(8, 9, 0, "CopyObject", "b"), passed(10, 11, 0, "HeadObject", "a"), passed(11, 12, 0, "HeadObject", "a"),
			passed(13, 14, 0, "DeleteObject", "a"),
		}, true, 10},
		{"delete-repeated-without-a-check", 250, []passage{
			passed(1, 2, 0, "HeadObject", "a"), passed(6, 7, 0, "HeadObject", "a"), passed(8, 9, 0, "DeleteObject", "a"),
			passed(10, 11, 0, "CopyObject", "b"), passed(12, 13, 0, "DeleteObject", "a"),
		}, false, 0},
		{"delete-after-the-reply", 250, []passage{
			passed(8, 9, 0, "CopyObject", "b"), passed(10, 11, 0, "HeadObject", "a"), passed(60, 61, 0, "DeleteObject", "a"),
		}, false, 0},
		{"delete-after-a-reply-in-doubt", 451, []passage{
			passed(8, 9, 0, "CopyObject", "b"), passed(10, 11, 0, "HeadObject", "a"), passed(60, 61, 0, "DeleteObject", "a"),
		}, true, 10},
	} {
		h := History{at(5, 50, rnto("b", tt.code))}
		(&Plan{passed: tt.passed}).Excuse(h)
		if h[0].Blind != tt.blind || h[0].CheckedFrom != tt.looked {
			t.Errorf("%s: %v, checked from %d", tt.name, h[0].Blind, h[0].CheckedFrom)
		}
	}
}

// The append runs from 5 to 50 on replica 0. It is settled if S3 responded to all requests in that time.
func TestSettle(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		code int
		lost []passage
		want bool
	}{
		{"all-responded", 451, nil, true},
		{"done", 226, nil, false},
		{"no-reply", 0, nil, false},
		{"no-response", 451, []passage{passed(6, 60, 0, "PutObject", "a")}, false},
		{"no-response-before", 451, []passage{passed(4, 60, 0, "PutObject", "a")}, true},
		{"no-response-to-another-replica", 451, []passage{passed(6, 60, 1, "PutObject", "a")}, true},
	} {
		h := History{at(5, 50, appe("x", tt.code))}
		(&Plan{lost: tt.lost}).Settle(h)
		if h[0].Settled != tt.want {
			t.Errorf("%s: %v", tt.name, h[0].Settled)
		}
	}
}
