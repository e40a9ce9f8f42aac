package s3client

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"github.com/babelftp/babelftp/driver"
	"github.com/babelftp/babelftp/internal/config"
)

// ruleNeeds lists the features of the bucket and its S3 server that objects.rules of a tenant need.
type ruleNeeds struct {
	tags, retention, legalHold bool
	keys                       []string // KMS keys without placeholders
}

func needsOf(rules []config.ObjectRule) ruleNeeds {
	var n ruleNeeds
	keys := map[string]bool{}
	for _, r := range rules {
		n.tags = n.tags || len(r.Set.Tags) > 0
		n.retention = n.retention || r.Set.Retain.Mode != ""
		n.legalHold = n.legalHold || r.Set.LegalHold != nil && *r.Set.LegalHold
		if r.Set.KMSKey != "" && !strings.Contains(r.Set.KMSKey, "{") {
			keys[r.Set.KMSKey] = true
		}
	}
	n.keys = slices.Sorted(maps.Keys(keys))
	return n
}

// locks reports whether the bucket needs Object Lock.
func (n *ruleNeeds) locks() bool { return n.retention || n.legalHold }

// storeByRules tries what objects.rules need. It locks no object, because nobody could delete it.
func (p *prober) storeByRules(ctx context.Context) {
	needs := p.bucket.rules
	if needs.tags {
		p.put(ctx, driver.Objects{Tags: map[string]string{"probe": "babelftp"}})
		try(ctx, p, p.client.GetObjectTagging, &s3.GetObjectTaggingInput{Bucket: &p.bucket.Name, Key: &p.own})
		if p.bucket.Profile.LosesTags {
			try(ctx, p, p.client.PutObjectTagging, &s3.PutObjectTaggingInput{
				Bucket: &p.bucket.Name, Key: &p.own,
				Tagging: &types.Tagging{TagSet: []types.Tag{{Key: aws.String("probe"), Value: aws.String("babelftp")}}},
			})
		}
	}
	for _, key := range needs.keys {
		p.put(ctx, driver.Objects{Encryption: types.ServerSideEncryptionAwsKms, KMSKeyID: key})
	}
	if !p.dry || !needs.locks() {
		return
	}
	in := p.object(p.bucket.Objects)
	if needs.retention {
		in.ObjectLockMode = types.ObjectLockModeGovernance
	}
	if needs.legalHold {
		in.ObjectLockLegalHoldStatus = types.ObjectLockLegalHoldStatusOn
	}
	try(ctx, p, p.client.PutObject, in)
}
