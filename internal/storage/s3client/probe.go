package s3client

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"golang.org/x/sync/errgroup"

	"github.com/babelftp/babelftp/driver"
	"github.com/babelftp/babelftp/internal/base/panics"
)

const (
	// probeTimeout bounds the time in which a probe begins requests, and requestTimeout each of them.
	probeTimeout   = time.Minute
	requestTimeout = 10 * time.Second

	// slowestUpload is the assumed minimum of bytes that S3 accepts in a second.
	slowestUpload = 1 << 20
)

// Probe tries the requests that the server makes in a bucket, as far as its users may do what needs them.
//
// Its objects lie where no user sees them. Of the keys of users it takes one that no object has: it asks for it,
// deletes it, and begins an upload that it aborts. It deletes what it has stored, also when ctx ends. It stores
// nothing that it may not delete.
func Probe(ctx context.Context, b *Bucket, log *slog.Logger) *Report {
	r := &Report{Bucket: b}
	if err := b.Check(ctx); err != nil {
		r.Problems = []string{err.Error()}
		return r
	}
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	p := newProber(b, b.Prefix, r)
	defer p.resolve()
	defer p.clean(ctx)
	p.run(ctx, log)
	return r
}

// noteObjectLock notes for how long a bucket that users write to keeps each version by default, or that the
// credentials may not ask. Servers without Object Lock tell nothing.
func (p *prober) noteObjectLock(ctx context.Context) {
	out, err := send(
		ctx, p, p.scratch.GetObjectLockConfiguration, &s3.GetObjectLockConfigurationInput{Bucket: &p.bucket.Name})
	if denied, ok := errors.AsType[*DeniedError](err); ok {
		p.report.Notes = append(
			p.report.Notes, "whether Object Lock keeps versions is not known: the IAM policy lacks "+denied.Needed())
	}
	if err != nil || out.ObjectLockConfiguration == nil || out.ObjectLockConfiguration.Rule == nil {
		return
	}
	kept := out.ObjectLockConfiguration.Rule.DefaultRetention
	if kept == nil {
		return
	}
	number, unit := aws.ToInt32(kept.Days), "day(s)"
	if kept.Years != nil {
		number, unit = *kept.Years, "year(s)"
	}
	p.report.Notes = append(p.report.Notes, fmt.Sprintf("Object Lock keeps each version for %d %s (%s): "+
		"what users delete or overwrite, and each record of an upload below %s, takes room until then", number, unit,
		kept.Mode, p.bucket.Prefix+reserved))
}

// maxParallel is how many buckets are probed at the same time.
const maxParallel = 16

// ProbeAll probes buckets, some at once: see [Probe]. It calls report for each in their order, as
// soon as those before have ended.
func ProbeAll(ctx context.Context, buckets []*Bucket, log *slog.Logger, report func(*Report)) {
	ended := make([]chan *Report, len(buckets))
	for i := range ended {
		ended[i] = make(chan *Report, 1)
	}
	var group errgroup.Group
	group.SetLimit(maxParallel)
	panics.Go(func() {
		for i, b := range buckets {
			group.Go(func() error {
				ended[i] <- Probe(ctx, b, log)
				return nil
			})
		}
	})
	for _, one := range ended {
		report(<-one)
	}
}

// A prober makes requests for one bucket.
type prober struct {
	bucket     *Bucket
	scratch    *scratch
	client     driver.Client // of the scratch
	region     Region
	report     *Report
	own, users string // the keys
	quarantine string // what the keys of refused files begin with, empty for none

	// The resources of all own keys, and of all keys.
	allOwn, all string

	dry     bool // It notes the permissions for its requests as allowed, and sends none.
	allowed map[Permission]bool
	denied  [][]Permission // what each denied request needs
	exists  bool           // whether there is an object at the probe's key

	ended bool // no further request makes sense
}

// newProber makes one for keys with a prefix.
func newProber(b *Bucket, prefix string, r *Report) *prober {
	s, region, name := newScratch(b.Client, b.Name), b.region(), "probe-"+strings.ToLower(rand.Text())
	return &prober{
		bucket: b, scratch: s, client: b.withCustomerKey(s.Client), region: region, report: r,
		own: prefix + reserved + name, users: prefix + "babelftp-" + name,
		allOwn: region.objectARN(b.Name, prefix+reserved+"*"), all: region.objectARN(b.Name, prefix+"*"),
		quarantine: b.Use().Quarantine,
		allowed:    map[Permission]bool{},
	}
}

// run makes the requests that the server makes for a bucket. What it lacks, [PolicyFor] lacks.
func (p *prober) run(ctx context.Context, log *slog.Logger) {
	b, use := p.bucket, p.bucket.Use()
	if use.Write {
		p.noteObjectLock(ctx)
	}
	try(
		ctx, p, p.client.ListObjectsV2,
		&s3.ListObjectsV2Input{Bucket: &b.Name, Prefix: &b.Prefix, MaxKeys: aws.Int32(1)})
	p.get(ctx, p.users, nil, "NoSuchKey")
	if p.asksForVersioning() {
		try(ctx, p, p.scratch.GetBucketVersioning, &s3.GetBucketVersioningInput{Bucket: &b.Name})
	}
	if use.Delete {
		p.remove(ctx, p.users)
	}
	removes, aborts := true, true
	if use.Write || use.Events {
		removes = p.remove(ctx, p.own)
	}
	if use.Write {
		upload := &s3.AbortMultipartUploadInput{Bucket: &b.Name, Key: &p.users, UploadId: aws.String("none")}
		_, aborts = try(ctx, p, p.client.AbortMultipartUpload, upload, "NoSuchUpload", "NoSuchKey")
	}
	if removes && aborts {
		p.verify(ctx, log)
	}
	if removes && (use.Write || use.Events) {
		p.storeObject(ctx)
	}
	if aborts && use.Write {
		p.upload(ctx)
	}
	if p.quarantine != "" && use.Write {
		p.useQuarantine(ctx)
	}
	if use.Past {
		p.readVersions(ctx)
	}
	if use.Restore {
		try(ctx, p, p.client.RestoreObject, &s3.RestoreObjectInput{
			Bucket: &b.Name, Key: &p.users, RestoreRequest: &types.RestoreRequest{Days: aws.Int32(1)},
		}, "NoSuchKey", "NotFound")
	}
	if removes && aborts && use.Write && len(p.denied) == 0 && !p.ended {
		p.verifyProfile(ctx)
	}
}

// asksForVersioning reports whether the server asks if the bucket keeps versions. [Bucket.Verify] may do so, too, which
// no dry run calls: for overwrite: version, and for an S3 server that is not known yet.
func (p *prober) asksForVersioning() bool {
	known, ok := driver.ProfileNamed(p.bucket.Profile.Name)
	return known.GhostPrefixes || p.dry && (p.bucket.KeepsVersions() || !ok || known.Name == "strict")
}

// verify finds out what the server can do, and whether that is what the configuration promises. It may store objects
// for that.
func (p *prober) verify(ctx context.Context, log *slog.Logger) {
	if p.dry || ctx.Err() != nil {
		return
	}
	err := p.bucket.verify(context.WithoutCancel(ctx), p.scratch, log)
	if denied, ok := errors.AsType[*DeniedError](err); ok {
		p.denied = append(p.denied, p.needs(denied.Needs, true))
	} else if err != nil {
		p.report.Problems = append(p.report.Problems, err.Error())
		p.ended = true
	}
}

// verifyProfile has the server show what its profile promises.
func (p *prober) verifyProfile(ctx context.Context) {
	if p.dry || p.ended || ctx.Err() != nil {
		return
	}
	b := p.bucket
	broken, err := brokenPromises(context.WithoutCancel(ctx), p.scratch, b.Prefix, b.Profile)
	if err != nil {
		p.ended = true
		p.problem("the profile was not verified: %s", strings.ReplaceAll(err.Error(), "\n", " "))
	}
	for _, what := range broken {
		p.problem(
			"its S3 server does not do what the profile %s promises: %s: name another one in s3.profile",
			b.Profile.Name, what)
	}
}

// remove deletes a key that no object has.
func (p *prober) remove(ctx context.Context, key string) bool {
	in := &s3.DeleteObjectInput{Bucket: &p.bucket.Name, Key: &key}
	if p.bucket.Profile.ConditionalDelete {
		in.IfMatch = aws.String(wrongETag) // so that no delete marker stays
	}
	_, ok := try(ctx, p, p.client.DeleteObject, in, "PreconditionFailed", "NoSuchKey", "NotFound")
	return ok
}

// get reads an object, or its version with an ID that is not nil.
func (p *prober) get(ctx context.Context, key string, id *string, codes ...string) {
	in := &s3.GetObjectInput{Bucket: &p.bucket.Name, Key: &key, VersionId: id}
	if out, _ := try(ctx, p, p.client.GetObject, in, codes...); out != nil && out.Body != nil { // nil in a dry run
		_ = out.Body.Close()
	}
}

// readVersions lists versions, and reads one that no object has.
func (p *prober) readVersions(ctx context.Context) {
	name, id := &p.bucket.Name, aws.String("null")
	try(ctx, p, p.client.ListObjectVersions, &s3.ListObjectVersionsInput{Bucket: name, Prefix: &p.bucket.Prefix,
		MaxKeys: aws.Int32(1)})
	p.get(ctx, p.users, id, "NoSuchVersion", "NoSuchKey")
	if p.bucket.Use().Write {
		try(ctx, p, p.client.GetObjectTagging,
			&s3.GetObjectTaggingInput{Bucket: name, Key: &p.users, VersionId: id}, "NoSuchVersion", "NoSuchKey")
	}
}

// clean deletes what was stored.
func (p *prober) clean(ctx context.Context) {
	if ctx.Err() != nil {
		p.problem("the check was stopped, or took longer than %s", probeTimeout)
	}
	for _, what := range p.scratch.clean(ctx) {
		p.problem("%s", what)
	}
}
