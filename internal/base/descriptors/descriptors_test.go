package descriptors

import "testing"

func TestReached(t *testing.T) {
	for _, tc := range []struct {
		name              string
		reserve           Reserve
		descriptor, limit uint64
		want              bool
	}{
		{"sessions-below", Sessions, 959, 1024, false},
		{"sessions-at", Sessions, 960, 1024, true},
		{"transfers-below", Transfers, 991, 1024, false},
		{"transfers-at", Transfers, 992, 1024, true},
		{"small-limit-sessions-below", Sessions, 47, 64, false},
		{"small-limit-sessions-at", Sessions, 48, 64, true},
		{"small-limit-transfers-below", Transfers, 55, 64, false},
		{"small-limit-transfers-at", Transfers, 56, 64, true},
		{"unlimited", Sessions, 1 << 20, 1<<64 - 1, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := tc.reserve.reached(tc.descriptor, tc.limit); got != tc.want {
				t.Errorf("descriptor %d of %d reaches the reserve: %v", tc.descriptor, tc.limit, got)
			}
		})
	}
}
