//go:build race

package acceptance_test

// raceDetector says that the race detector watches the tests, and so is to watch babelftp too.
const raceDetector = true
