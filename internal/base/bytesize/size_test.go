package bytesize

import "testing"

func TestSize(t *testing.T) {
	for _, tc := range []struct {
		text  string
		want  Size
		shown string
	}{
		{"0", 0, "0B"},
		{"1024", KiB, "1KiB"},
		{"256MiB", 256 * MiB, "256MiB"},
		{"256 MiB", 256 * MiB, "256MiB"},
		{"5GB", 5e9, "5GB"},
		{"1500000", 1500000, "1500kB"},
		{"2TiB", 2 * TiB, "2TiB"},
		{"7B", 7, "7B"},
	} {
		t.Run(tc.text, func(t *testing.T) {
			var got Size
			if err := got.UnmarshalText([]byte(tc.text)); err != nil || got != tc.want || got.String() != tc.shown {
				t.Errorf("got %d (%s), %v; want %d (%s)", got, got, err, tc.want, tc.shown)
			}
		})
	}
	for _, text := range []string{"", "MiB", "-1", "1.5GiB", "1 M", "1mib", "9999999TiB", "0x10"} {
		t.Run("not-"+text, func(t *testing.T) {
			var got Size
			if err := got.UnmarshalText([]byte(text)); err == nil {
				t.Errorf("got %d bytes", got)
			}
		})
	}
}
