package view

import (
	"testing"

	"github.com/babelftp/babelftp/internal/testkit/s3test"
)

func TestMain(m *testing.M) { s3test.Main(m) }
