package limits

import "testing"

func TestLeft(t *testing.T) {
	for _, tc := range []struct {
		name              string
		reserve           Reserve
		descriptor, limit uint64
		want              uint64
	}{
		{"sessions-below", Sessions, 959, 1024, 1},
		{"sessions-at", Sessions, 960, 1024, 0},
		{"sessions-first", Sessions, 0, 1024, 960},
		{"sessions-last", Sessions, 1023, 1024, 0},
		{"transfers-below", Transfers, 991, 1024, 1},
		{"transfers-at", Transfers, 992, 1024, 0},
		{"small-limit-sessions-below", Sessions, 47, 64, 1},
		{"small-limit-sessions-at", Sessions, 48, 64, 0},
		{"small-limit-transfers-below", Transfers, 55, 64, 1},
		{"small-limit-transfers-at", Transfers, 56, 64, 0},
		{"unlimited", Sessions, 1 << 20, 1<<64 - 1, 1<<64 - 1 - 64 - 1<<20},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := tc.reserve.left(tc.descriptor, tc.limit); got != tc.want {
				t.Errorf("from descriptor %d of %d on %d are left, want %d", tc.descriptor, tc.limit, got, tc.want)
			}
		})
	}
}
