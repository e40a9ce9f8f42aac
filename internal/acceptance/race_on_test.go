//go:build race

package acceptance_test

// raceDetector means that the tests, and therefore babelftp, are built with the race detector.
const raceDetector = true
