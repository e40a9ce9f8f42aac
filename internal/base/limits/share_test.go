package limits

import "testing"

func TestShare(t *testing.T) {
	for _, tc := range []struct{ slots, others, want int }{
		{100, 0, 75}, {100, 75, 18}, {100, 93, 5}, {100, 99, 1}, {100, 100, 1}, {1, 0, 1},
	} {
		if got := Share(tc.slots, tc.others); got != tc.want {
			t.Errorf("Share(%d, %d) = %d, want %d", tc.slots, tc.others, got, tc.want)
		}
	}
}
