package limits

import "testing"

func TestLeft(t *testing.T) {
	for _, tc := range []struct {
		name              string
		reserve           Reserve
		descriptor, limit uint64
		want              uint64
	}{
		{"sessions-below", SessionReserve, 959, 1024, 1},
		{"sessions-at", SessionReserve, 960, 1024, 0},
		{"sessions-first", SessionReserve, 0, 1024, 960},
		{"sessions-last", SessionReserve, 1023, 1024, 0},
		{"transfers-below", TransferReserve, 991, 1024, 1},
		{"transfers-at", TransferReserve, 992, 1024, 0},
		{"small-limit-sessions-below", SessionReserve, 47, 64, 1},
		{"small-limit-sessions-at", SessionReserve, 48, 64, 0},
		{"small-limit-transfers-below", TransferReserve, 55, 64, 1},
		{"small-limit-transfers-at", TransferReserve, 56, 64, 0},
		{"unlimited", SessionReserve, 1 << 20, 1<<64 - 1, 1<<64 - 1 - 64 - 1<<20},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := tc.reserve.left(tc.descriptor, tc.limit); got != tc.want {
				t.Errorf("descriptor %d of %d: %d left, want %d", tc.descriptor, tc.limit, got, tc.want)
			}
		})
	}
}
