package s3client

import (
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/babelftp/babelftp/internal/config"
	"github.com/babelftp/babelftp/internal/testkit/configtest"
	"github.com/babelftp/babelftp/internal/testkit/s3test"
)

// The SDK's checksums are the tenant's choice, else the server's, else the SDK's.
func TestChecksums(t *testing.T) {
	s := s3test.Start(t, "sim-aws")
	for name, tc := range map[string]struct {
		server, tenant config.ChecksumUse
		request        aws.RequestChecksumCalculation
		response       aws.ResponseChecksumValidation
	}{
		"by-the-sdk": {"", "", aws.RequestChecksumCalculationWhenSupported,
			aws.ResponseChecksumValidationWhenSupported},
		"by-the-server": {config.ChecksumsRequired, "", aws.RequestChecksumCalculationWhenRequired,
			aws.ResponseChecksumValidationWhenRequired},
		"by-the-tenant": {
			config.ChecksumsRequired, config.ChecksumsSupported,
			aws.RequestChecksumCalculationWhenSupported, aws.ResponseChecksumValidationWhenSupported,
		},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := configtest.New(t, s)
			cfg.S3.Checksums, cfg.Tenants["acme"].S3.Checksums = tc.server, tc.tenant
			all, err := open(t.Context(), cfg, s.AWSConfig())
			if err != nil {
				t.Fatal(err)
			}
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
