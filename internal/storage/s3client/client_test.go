package s3client

import (
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/babelftp/babelftp/internal/config"
	"github.com/babelftp/babelftp/internal/testkit/must"
	"github.com/babelftp/babelftp/internal/testkit/s3test"
	"github.com/babelftp/babelftp/internal/testkit/servicetest"
)

// The profile decides whether the SDK sends checksums that S3 does not ask for.
func TestChecksums(t *testing.T) {
	s := s3test.Start(t, "sim-aws")
	for name, tc := range map[string]struct {
		profile  config.Profile
		request  aws.RequestChecksumCalculation
		response aws.ResponseChecksumValidation
	}{
		"unknown": {"", aws.RequestChecksumCalculationWhenSupported, aws.ResponseChecksumValidationWhenSupported},
		"with":    {"minio", aws.RequestChecksumCalculationWhenSupported, aws.ResponseChecksumValidationWhenSupported},
		"without": {"strict", aws.RequestChecksumCalculationWhenRequired, aws.ResponseChecksumValidationWhenRequired},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := servicetest.NewConfig(t, s)
			cfg.S3.Profile = tc.profile
			all, err := open(t.Context(), cfg, s.AWSConfig())
			must.OK(t, err)
			opts := all[0].Client.Options()
			if opts.RequestChecksumCalculation != tc.request || opts.ResponseChecksumValidation != tc.response {
				t.Errorf(
					"checksums are %v and %v, want %v and %v", opts.RequestChecksumCalculation,
					opts.ResponseChecksumValidation,
					tc.request, tc.response)
			}
		})
	}
}
