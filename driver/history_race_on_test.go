//go:build race

package driver_test

// raced says that the race detector is at work, with which a history takes several times as long.
const raced = true
