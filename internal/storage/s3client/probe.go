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
	"github.com/aws/smithy-go"
	"golang.org/x/sync/errgroup"

	"github.com/babelftp/babelftp/driver"
	"github.com/babelftp/babelftp/internal/base/panics"
	"github.com/babelftp/babelftp/internal/base/s3error"
)

const (
	// probeTimeout bounds the time in which a probe begins requests, and requestTimeout each of them.
	probeTimeout   = time.Minute
	requestTimeout = 10 * time.Second
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

	// The resources of all own keys, and of all keys.
	allOwn, all string

	dry     bool // It notes the permissions for its requests as allowed, and sends none.
	allowed map[Permission]bool
	denied  [][]Permission // what each denied request needs
	exists  bool           // whether there is an object at the own key
	ended   bool           // no further request makes sense
}

// newProber makes one for keys with a prefix.
func newProber(b *Bucket, prefix string, r *Report) *prober {
	s, region, name := newScratch(b.Client, b.Name), b.region(), "probe-"+strings.ToLower(rand.Text())
	return &prober{
		bucket: b, scratch: s, client: b.withCustomerKey(s.Client), region: region, report: r,
		own: prefix + reserved + name, users: prefix + "babelftp-" + name,
		allOwn: region.ObjectARN(b.Name, prefix+reserved+"*"), all: region.ObjectARN(b.Name, prefix+"*"),
		allowed: map[Permission]bool{},
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
	p.get(ctx, p.users, "NoSuchKey")
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
	if removesVersions(b) {
		p.removeVersion(ctx)
	}
	if removes && aborts && use.Write && len(p.denied) == 0 {
		p.verifyProfile(ctx)
	}
}

// asksForVersioning reports whether the server asks if the bucket keeps versions. [Bucket.Verify] may do so, too, which
// no dry run calls: for overwrite: version, and for an S3 server that is not known yet.
func (p *prober) asksForVersioning() bool {
	known, ok := driver.ProfileNamed(p.bucket.Profile.Name)
	return known.GhostPrefixes || p.dry && (p.bucket.KeepsVersions() || !ok || known.Name == "strict")
}

// removesVersions tells whether the server takes back the delete of an object that another client has replaced.
func removesVersions(b *Bucket) bool {
	return b.Use().Delete && b.KeepsVersions() && !b.Profile.ConditionalDelete
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
	broken, err := verifyProfile(context.WithoutCancel(ctx), p.scratch, b.Prefix, b.Profile)
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

// try makes a request. It returns true if S3 allows it, also by an answer with one of these codes, which a dry run
// expects.
func try[In, Out any](
	ctx context.Context, p *prober,
	request func(context.Context, *In, ...func(*s3.Options)) (*Out, error), in *In, codes ...string,
) (*Out, bool) {
	if p.ended || ctx.Err() != nil {
		return nil, false
	}
	out, err := send(ctx, p, request, in)
	if p.dry && len(codes) > 0 {
		out = nil
	}
	return out, p.judge(in, err, codes)
}

// send makes a request. In a dry run the answer is empty. The request outlives ctx: S3 may perform it without a reader
// of the answer, and then the probe would not know what to delete.
func send[In, Out any](
	ctx context.Context, p *prober,
	request func(context.Context, *In, ...func(*s3.Options)) (*Out, error), in *In,
) (*Out, error) {
	if p.dry {
		p.allow(in)
		return new(Out), nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), requestTimeout)
	defer cancel()
	return request(ctx, in, withoutTrailer)
}

// allow notes that S3 allows a request. A dry run knows of no object what it is, so it notes all cases.
func (p *prober) allow(in any) {
	for _, need := range p.needs(p.region.Needs(in), p.dry) {
		p.allowed[need] = true
	}
}

// withoutTrailer keeps the SDK from sending checksums that an upload does not have.
func withoutTrailer(o *s3.Options) {
	o.RequestChecksumCalculation = aws.RequestChecksumCalculationWhenRequired
}

// judge learns from the answer to a request what the policy allows.
func (p *prober) judge(in any, err error, codes []string) bool {
	api, answered := errors.AsType[smithy.APIError](err)
	denied, isDenied := errors.AsType[*DeniedError](err)
	switch {
	case err == nil || s3error.HasCode(err, codes...):
		p.allow(in)
		return true
	case isDenied:
		p.denied = append(p.denied, p.needs(denied.Needs, true))
	case answered:
		p.problem(
			"S3 refuses %s: %s: %s", s3error.Operation(err), api.ErrorCode(),
			strings.ReplaceAll(api.ErrorMessage(), "\n", " "))
	default:
		p.ended = true
		p.problem("%s got no answer: %s", s3error.Operation(err), strings.ReplaceAll(err.Error(), "\n", " "))
	}
	return false
}

func (p *prober) problem(format string, args ...any) {
	p.report.Problems = append(p.report.Problems, fmt.Sprintf("%v: %s", p.bucket, fmt.Sprintf(format, args...)))
}

// needs are the permissions of a request for objects of the probe, with patterns in place of their keys. Those that
// only some objects need count if cases is set.
func (p *prober) needs(all []Need, cases bool) []Permission {
	o, name := p.bucket.Objects, p.bucket.Name
	var needs []Permission
	for _, need := range all {
		switch {
		case need.Case == Missing: // the listing shows it
			continue
		case need.Case == Tagged && (!cases || len(o.Tags) == 0),
			need.Case == KMS && (!cases || o.KMSKeyID == ""):
			continue
		case need.Case == KMS:
			need.Resource, _ = p.region.KeyARN(o.KMSKeyID)
		case need.Action == DeleteObjectVersion, need.Action == GetObjectTagging,
			need.Resource == p.region.ObjectARN(name, p.users):
			need.Resource = p.all
		case strings.HasPrefix(need.Resource, strings.TrimSuffix(p.allOwn, "*")):
			need.Resource = p.allOwn
		}
		needs = append(needs, need.Permission)
	}
	return needs
}

// storeObject stores an object with the attributes of the tenant, reads it and copies it.
func (p *prober) storeObject(ctx context.Context) {
	b, o := p.bucket, p.bucket.Objects
	if !b.Use().Write {
		o = driver.Objects{} // those of events
	}
	if !p.put(ctx, o) {
		for _, part := range parts(o) {
			p.put(ctx, part)
		}
	}
	if !p.exists {
		return
	}
	if b.Profile.ConditionalPut {
		in := p.object(o)
		in.IfNoneMatch = aws.String("*")
		if out, ok := try(ctx, p, p.client.PutObject, in, "PreconditionFailed"); ok && out != nil {
			p.unconditional("If-None-Match")
		}
	}
	p.get(ctx, p.own)
	if len(o.Tags) > 0 {
		try(ctx, p, p.client.GetObjectTagging, &s3.GetObjectTaggingInput{Bucket: &b.Name, Key: &p.own})
	}
	if !b.Use().Write {
		return
	}
	copied := p.own + "-copy"
	in := &s3.CopyObjectInput{Bucket: &b.Name, Key: &copied, CopySource: aws.String(b.Name + "/" + escape(p.own))}
	a := o.OfFile("")
	a.ApplyToCopy(in)
	if _, ok := try(ctx, p, p.client.CopyObject, in); ok {
		p.noteTags(ctx, copied, "a copy with other attributes, as MFMT and some renames make it,")
	}
}

// get reads an object.
func (p *prober) get(ctx context.Context, key string, codes ...string) {
	in := &s3.GetObjectInput{Bucket: &p.bucket.Name, Key: &key}
	if out, _ := try(ctx, p, p.client.GetObject, in, codes...); out != nil && out.Body != nil { // nil in a dry run
		_ = out.Body.Close()
	}
}

// removeVersion lists the versions of the own object, and deletes one that the probe has stored.
func (p *prober) removeVersion(ctx context.Context) {
	name := &p.bucket.Name
	try(ctx, p, p.client.ListObjectVersions, &s3.ListObjectVersionsInput{Bucket: name, Prefix: &p.own})
	key, id := p.scratch.version()
	if p.dry {
		key, id = &p.own, aws.String("any")
	}
	if id != nil {
		try(ctx, p, p.client.DeleteObject, &s3.DeleteObjectInput{Bucket: name, Key: key, VersionId: id})
	}
}

// noteTags says if an object has not got the tags of the tenant, and what it was.
func (p *prober) noteTags(ctx context.Context, key, what string) {
	if len(p.bucket.Objects.Tags) == 0 {
		return
	}
	out, ok := try(ctx, p, p.client.GetObjectTagging, &s3.GetObjectTaggingInput{Bucket: &p.bucket.Name, Key: &key})
	if !ok || len(out.TagSet) > 0 {
		return
	}
	p.report.Notes = append(p.report.Notes, fmt.Sprintf("its S3 server loses objects.tags: %s has none", what))
}

// parts are objects with no attributes, and with one each of those that take an action of its own.
func parts(o driver.Objects) []driver.Objects {
	all := []driver.Objects{{}}
	if o.ACL != "" {
		all = append(all, driver.Objects{ACL: o.ACL})
	}
	if len(o.Tags) > 0 {
		all = append(all, driver.Objects{Tags: o.Tags})
	}
	if o.KMSKeyID != "" {
		all = append(all, driver.Objects{Encryption: o.Encryption, KMSKeyID: o.KMSKeyID})
	}
	return all
}

// object is the request for the own object.
func (p *prober) object(o driver.Objects) *s3.PutObjectInput {
	in := &s3.PutObjectInput{Bucket: &p.bucket.Name, Key: &p.own, Body: strings.NewReader(content)}
	a := o.OfFile("")
	a.ApplyToPut(in)
	return in
}

func (p *prober) put(ctx context.Context, o driver.Objects) bool {
	_, ok := try(ctx, p, p.client.PutObject, p.object(o))
	p.exists = p.exists || ok
	return ok
}

// unconditional says that a server has passed over a condition.
func (p *prober) unconditional(header string) {
	p.problem(
		"its S3 server stored an object although %s forbade it, which the profile %s promises: name another one in "+
			"s3.profile", header, p.bucket.Profile.Name)
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

// clean deletes what was stored.
func (p *prober) clean(ctx context.Context) {
	if ctx.Err() != nil {
		p.problem("the check was stopped, or took longer than %s", probeTimeout)
	}
	for _, what := range p.scratch.clean(ctx) {
		p.problem("%s", what)
	}
}
