package driver

import (
	"errors"
	"fmt"
	"time"

	"github.com/babelftp/babelftp/driver/internal/keys"
	"github.com/babelftp/babelftp/driver/internal/membudget"
	"github.com/babelftp/babelftp/driver/internal/s3api"
)

const (
	// maxParallel is the maximum of requests that one transfer makes in parallel: as many as an object has parts.
	maxParallel = s3api.MaxParts

	// minIdleTimeout is the minimum of IdleTimeout. A smaller value is a number without its unit.
	minIdleTimeout = time.Millisecond
)

// Validate returns an error that names each option out of range, with its range and the unit.
func (o *Options) Validate() error {
	minPartSize := int64(s3api.MinPartSize)
	if o.smallestPart != 0 {
		minPartSize = o.smallestPart
	}
	errs := []error{
		checkRange("Prefix", len(o.Prefix), 0, keys.MaxBytes, " bytes"),
		checkRange("PartSize", o.PartSize, minPartSize, s3api.MaxPartSize, " bytes"),
		checkRange("Concurrency", o.Concurrency, 1, maxParallel, " parts"),
		checkRange("Streams", o.Streams, 1, maxParallel, " requests"),
		checkRange("CopyLimit", o.CopyLimit, 1, maxCopyLimit, " bytes"),
	}
	if o.Memory != nil && o.Memory.Limit() < membudget.MinLimit {
		errs = append(errs, fmt.Errorf("driver: option Memory: %d bytes is out of range: want at least %d bytes", o.Memory.Limit(), membudget.MinLimit))
	}
	if o.IdleTimeout != 0 && o.IdleTimeout < minIdleTimeout {
		errs = append(errs, fmt.Errorf("driver: option IdleTimeout: %v is out of range: want at least %v", o.IdleTimeout, minIdleTimeout))
	}
	return errors.Join(errs...)
}

// checkRange returns an error for a value that is neither zero, the default, nor between both bounds.
func checkRange[N int | int64](option string, value, least, most N, unit string) error {
	if value == 0 || least <= value && value <= most {
		return nil
	}
	return fmt.Errorf("driver: option %s: %d%s is out of range: want %d to %d%s", option, value, unit, least, most, unit)
}
