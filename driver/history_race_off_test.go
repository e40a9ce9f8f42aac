//go:build !race

package driver_test

const raced = false
