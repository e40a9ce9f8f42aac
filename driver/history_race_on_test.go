//go:build race

package driver_test

// raceDetector says that the race detector is at work, with which a history takes several times as long.
const raceDetector = true
