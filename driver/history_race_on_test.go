//go:build race

package driver_test

// raceDetector reports whether the race detector is enabled, which makes histories several times slower.
const raceDetector = true
