package vfs

import (
	"testing"

	"github.com/babelftp/babelftp/internal/s3test"
)

func TestMain(m *testing.M) { s3test.Main(m) }
