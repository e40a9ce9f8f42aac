package s3client

import (
	"context"
	"net/http"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"github.com/babelftp/babelftp/driver"
	"github.com/babelftp/babelftp/internal/base/s3error"
	"github.com/babelftp/babelftp/internal/config"
)

// ObjectClient returns the client for the objects of the bucket.
func (b *Bucket) ObjectClient() driver.Client { return b.withCustomerKey(b.Client) }

// withCustomerKey makes client send the SSE-C key, if the bucket has one.
func (b *Bucket) withCustomerKey(client *s3.Client) driver.Client {
	if b.customerKey == nil {
		return client
	}
	return s3.New(client.Options(), s3.WithAPIOptions(driver.CustomerKey(b.customerKey)))
}

// checkChecksum checks that the server keeps checksums if objects.checksum is set. If it is not set, the profile
// decides, because older servers may reject or ignore checksums.
func (b *Bucket) checkChecksum(ctx context.Context, s *scratch) error {
	if b.Objects.Checksum == "" || b.Profile.Checksums || !b.use.Write {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	p := b.Profile
	kept, err := newSample(s, b.Prefix, &p).shows(ctx, &p.Checksums)
	switch status := s3error.Status(err); {
	case kept:
		b.Profile.Checksums = true
		b.setProfile(b.Profile)
		return nil
	case err == nil, status == http.StatusBadRequest, status == http.StatusNotImplemented:
		return b.newError(
			err, "its S3 server ("+b.Profile.Name+") does not keep checksums, which objects.checksum requires",
			"remove objects.checksum")
	}
	return b.explain(err)
}

// objectsOf converts the object attributes of a tenant.
func objectsOf(o *config.Objects) driver.Objects {
	objects := driver.Objects{
		ContentTypes: o.ContentTypes,
		CacheControl: o.CacheControl,
		StorageClass: types.StorageClass(o.StorageClass),
		ACL:          types.ObjectCannedACL(o.ACL),
		Tags:         o.Tags,
		KMSKeyID:     o.KMSKeyID,
		Checksum:     types.ChecksumAlgorithm(strings.ToUpper(string(o.Checksum))),
		ListSetTimes: o.ListingTimes == config.SetTimes,
	}
	switch o.Encryption {
	case config.EncryptionS3:
		objects.Encryption = types.ServerSideEncryptionAes256
	case config.EncryptionKMS:
		objects.Encryption = types.ServerSideEncryptionAwsKms
	}
	return objects
}
