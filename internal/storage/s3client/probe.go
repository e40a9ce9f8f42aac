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
	"github.com/babelftp/babelftp/internal/base/s3error"
)

const (
	// probeTimeout limits the whole probe except cleaning up; requestTimeout limits each request.
	probeTimeout   = time.Minute
	requestTimeout = 10 * time.Second

	// slowestUpload is the assumed minimum speed of uploads to S3, in bytes per second.
	slowestUpload = 1 << 20
)

// Probe tries the requests that the server sends for a bucket, depending on the permissions of its users.
//
// It stores its objects where no user sees them. It also uses one key below the prefix of the users at which no object
// exists: it reads and deletes the key, and starts an upload to it that it aborts. Probe deletes the objects that it
// stores, even if ctx ends, and stores nothing that it has no permission to delete.
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

// ProbeInUse is like [Probe] for a bucket with a [Watcher] and the buckets of its folders, which sessions may use at
// the same time. It returns the problems, each on one line, and tries only buckets that are usable.
func ProbeInUse(ctx context.Context, b *Bucket, log *slog.Logger) (problems []string) {
	for _, one := range append([]*Bucket{b}, b.Folders...) {
		if !one.Usable() {
			if _, err := one.Up(); err != nil {
				problems = append(problems, err.Error())
			}
			continue
		}
		tried := *one // because the probe sets the profile
		tried.watched, tried.Journal = nil, nil
		if r := Probe(ctx, &tried, log); !r.OK() {
			problems = append(problems, r.String())
		}
	}
	return problems
}

// noteObjectLock adds a note if Object Lock keeps each version for some time by default, or if the credentials lack
// the permission to find out. Servers without Object Lock return an error, which is ignored.
func (p *prober) noteObjectLock(ctx context.Context) {
	out, err := send(
		ctx, p, p.scratch.GetObjectLockConfiguration, &s3.GetObjectLockConfigurationInput{Bucket: &p.bucket.Name})
	if denied, ok := errors.AsType[*DeniedError](err); ok {
		p.report.Notes = append(
			p.report.Notes, "unknown whether Object Lock keeps versions: the IAM policy lacks "+denied.Needed())
	}
	enabled := err == nil && out.ObjectLockConfiguration != nil &&
		out.ObjectLockConfiguration.ObjectLockEnabled == types.ObjectLockEnabledEnabled
	if s3error.HasCode(err, "ObjectLockConfigurationNotFoundError") || err == nil && !p.dry && !enabled {
		if p.bucket.rules.locks() {
			p.problem("objects.rules locks files, but the bucket has no Object Lock: create a bucket with Object Lock, " +
				"or remove retain and legal_hold")
		}
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
		"deleted and overwritten files, and upload records below %s, use space until then", number, unit,
		kept.Mode, p.bucket.Prefix+reserved))
}

// maxParallel is the number of buckets that are probed at the same time.
const maxParallel = 16

// ProbeAll calls [Probe] for several buckets in parallel. It calls report for each bucket in order, as soon as all
// earlier ones are done.
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

// A prober sends the requests of one probe.
type prober struct {
	bucket     *Bucket
	scratch    *scratch
	client     driver.Client // client of the scratch, with the SSE-C key
	region     Region
	report     *Report
	own, users string // keys
	quarantine string // key prefix of quarantined files, empty without quarantine

	// ARNs of all keys that the server reserves, and of all keys.
	allOwn, all string

	dry     bool // record the permissions of requests as allowed, without sending the requests
	allowed map[Permission]bool
	denied  [][]Permission // permissions that each denied request needs
	exists  bool           // the probe stored its object

	ended bool // further requests are pointless
}

// newProber returns a prober whose keys begin with prefix.
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

// run sends the requests that the server sends for a bucket. [PolicyFor] covers exactly these.
func (p *prober) run(ctx context.Context, log *slog.Logger) {
	b, use := p.bucket, p.bucket.Use()
	if use.Write {
		p.noteObjectLock(ctx)
	}
	try(
		ctx, p, p.client.ListObjectsV2,
		&s3.ListObjectsV2Input{Bucket: &b.Name, Prefix: &b.Prefix, MaxKeys: aws.Int32(1)})
	p.get(ctx, p.users, nil, "NoSuchKey")
	if p.readsVersioning() {
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

// readsVersioning reports whether babelftp sends GetBucketVersioning. A dry run does not call [Bucket.Verify], so
// it counts the cases in which Verify sends it: "overwrite: version" and unknown S3 servers.
func (p *prober) readsVersioning() bool {
	known, ok := driver.ProfileNamed(p.bucket.Profile.Name)
	return known.GhostPrefixes || p.dry && (p.bucket.KeepsVersions() || !ok || known.Name == "strict")
}

// verify runs [Bucket.Verify] with the scratch of the probe, and reports its error.
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

// verifyProfile reports the promises of the profile that the server fails to keep.
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
			"its S3 server does not support what the profile %s promises: %s: set another s3.profile",
			b.Profile.Name, what)
	}
}

// remove sends DeleteObject for a key at which no object exists.
func (p *prober) remove(ctx context.Context, key string) bool {
	in := &s3.DeleteObjectInput{Bucket: &p.bucket.Name, Key: &key}
	if p.bucket.Profile.ConditionalDelete {
		in.IfMatch = aws.String(wrongETag) // avoids a delete marker
	}
	_, ok := try(ctx, p, p.client.DeleteObject, in, "PreconditionFailed", "NoSuchKey", "NotFound")
	return ok
}

// get reads an object, or one of its versions if id is not nil.
func (p *prober) get(ctx context.Context, key string, id *string, codes ...string) {
	in := &s3.GetObjectInput{Bucket: &p.bucket.Name, Key: &key, VersionId: id}
	if out, _ := try(ctx, p, p.client.GetObject, in, codes...); out != nil && out.Body != nil { // nil in a dry run
		_ = out.Body.Close()
	}
}

// readVersions lists versions, and reads a version that does not exist.
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

// clean deletes the objects and uploads of the probe.
func (p *prober) clean(ctx context.Context) {
	if ctx.Err() != nil {
		p.problem("the check was stopped, or took longer than %s", probeTimeout)
	}
	for _, what := range p.scratch.clean(ctx) {
		p.problem("%s", what)
	}
}
