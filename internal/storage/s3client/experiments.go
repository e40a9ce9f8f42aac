package s3client

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/babelftp/babelftp/driver"
	"github.com/babelftp/babelftp/driver/profile"
	"github.com/babelftp/babelftp/internal/base/s3error"
)

const (
	// detectTimeout limits the requests of detectProfile, because logins may wait for them. verifyTimeout limits the
	// requests of brokenPromises.
	detectTimeout = 10 * time.Second
	verifyTimeout = 30 * time.Second
)

// An experiment is a row in the table of tests that show what an S3 server can do. To prove one more field of a
// profile, add a row to [sample.experiments].
type experiment struct {
	// name describes what a capable server does, for operators and in Markdown. "check --probe" reports it if the
	// server fails, and docs/s3-servers.md lists the profiles that lack it.
	name string

	// fact is the field that the experiment proves, in the profile of the sample.
	fact *bool

	// lack inverts the fact: if it is true, the server does not do what the name says.
	lack bool

	// after is a fact that this experiment depends on. If it is false, the experiment does not run and its own fact is
	// false. It is nil without a dependency.
	after *bool

	// by selects the users of the experiment.
	by tester

	// try sends the requests, and reports whether the fact holds. An error of S3 is a result too; see run and kept.
	try func(context.Context) (bool, error)
}

// A tester selects which functions run an experiment: detectProfile, brokenPromises or both.
type tester int

const (
	_ tester = iota // both

	// onlyVerified marks experiments that are skipped for an unknown server, which keeps the value of the "strict"
	// profile.
	onlyVerified

	// onlyDetected marks experiments that need no verification, because another experiment fails if the profile is
	// wrong.
	onlyDetected
)

// experiments returns the table. Each experiment leaves an object with the ETag x.etag for the next one, so the
// deletions come last. "check --probe" reports in the same order.
//
// A row does not name the IAM actions of its requests, and [PolicyFor] does not read the table. The experiments only
// send requests that the driver sends for the users of a bucket anyway, so the policy of a bucket with write
// permission already allows them. The exception is persistentUploads: it lists the parts of an upload, which the server
// does only for tenants with resumable uploads. A policy made from the rows would allow that to every tenant. Without
// the permission S3 denies the request, and a denied request counts as kept. TestPolicyOfExperiments fails for a row
// that needs more.
func (x *sample) experiments() []experiment {
	p := x.profile
	return []experiment{
		{name: "`PutObject` with `If-None-Match`", fact: &p.ExclusivePut, try: x.exclusivePut},
		{name: "quoted ETags in conditions", fact: &p.UnquotedETags, lack: true, after: &p.ExclusivePut,
			by: onlyDetected, try: x.unquotedETags},
		{name: "`PutObject` with `If-Match`", fact: &p.ConditionalPut, after: &p.ExclusivePut, try: x.conditionalPut},
		// Swift supports the condition only here, and ignores it if two clients complete uploads at the same time.
		{name: "`CompleteMultipartUpload` with `If-None-Match`", fact: &p.ExclusiveComplete, after: &p.ExclusivePut,
			try: x.exclusiveComplete},
		{name: "`CompleteMultipartUpload` with `If-Match`", fact: &p.ConditionalComplete, after: &p.ExclusiveComplete,
			try: x.conditionalComplete},
		{name: "`CopyObject` with `If-Match`", fact: &p.ConditionalCopy, by: onlyVerified, try: x.conditionalCopy},
		{name: "ETags that are the MD5 of the object", fact: &p.MD5ETags, try: x.md5ETags},
		{name: "checksums in requests", fact: &p.Checksums, by: onlyVerified, try: x.checksums},
		{name: "sorted listings", fact: &p.SortedListings, by: onlyVerified, try: x.sortedListings},
		{name: "listings with any prefix", fact: &p.SlashPrefixes, lack: true, by: onlyVerified, try: x.slashPrefixes},
		{name: "multipart uploads that no longer exist once completed", fact: &p.PersistentUploads, lack: true,
			try: x.persistentUploads},
		{name: "the ETag in the response to `CompleteMultipartUpload`", fact: &p.CompletesWithoutETag, lack: true,
			try: x.completesWithoutETag},
		{name: "`UploadPartCopy`", fact: &p.PartCopy, try: x.partCopy},
		{name: "`x-amz-copy-source-if-match` for objects uploaded in parts", fact: &p.UncheckedSources,
			lack: true, after: &p.PartCopy, try: x.uncheckedSources},
		{name: "10,000 parts", fact: &x.fewParts, lack: true, try: x.refusesManyParts},
		{name: "`DeleteObject` with `If-Match`", fact: &p.ConditionalDelete, try: x.conditionalDelete},
		{name: "`DeleteObjects` with ETags", fact: &p.ConditionalBatchDelete, try: x.conditionalBatchDelete},
		{name: "`DeleteObjects`", fact: &p.BatchDelete, try: x.batchDelete},
	}
}

// promised reports whether, according to the profile, the server does what the name of the experiment says.
func (e experiment) promised() bool { return *e.fact != e.lack }

// run reports whether the fact holds.
func (e experiment) run(ctx context.Context) (bool, error) {
	if e.after != nil && !*e.after {
		return false, nil
	}
	return e.try(ctx)
}

// kept reports whether the server does what the name of the experiment says. A request that is denied or fails with a
// server error proves nothing and counts as kept. kept returns network errors only.
func (e experiment) kept(ctx context.Context) (bool, error) {
	holds, err := e.run(ctx)
	switch status := s3error.Status(err); {
	case status == http.StatusNotImplemented:
		return false, nil
	case status == http.StatusForbidden, status >= http.StatusInternalServerError:
		return true, nil
	}
	return holds != e.lack, networkError(err)
}

// shows runs the experiments for these facts, in the order of the table, until one fails. It reports whether all facts
// hold, and sets them in the profile of the sample. If S3 refuses a request for a reason other than the tested
// condition, shows returns the error.
func (x *sample) shows(ctx context.Context, facts ...*bool) (bool, error) {
	for _, e := range x.experiments() {
		if !slices.Contains(facts, e.fact) {
			continue
		}
		var err error
		if *e.fact, err = e.run(ctx); err != nil || !*e.fact {
			return false, err
		}
	}
	return true, nil
}

// networkError returns err if no response of S3 caused it, and nil otherwise.
func networkError(err error) error {
	if s3error.Status(err) != 0 {
		return nil
	}
	return err
}

// detectProfile returns p with the abilities that an unknown server shows in experiments on objects below prefix. Any
// refusal counts as a missing ability. It returns network errors only.
func detectProfile(ctx context.Context, s *scratch, prefix string, p driver.Profile) (driver.Profile, error) {
	ctx, cancel := context.WithTimeout(ctx, detectTimeout)
	defer cancel()
	x := newSample(s, prefix, &p)
	if err := x.putAgain(ctx); err != nil { // a response means that the credentials have no write permission here
		return p, networkError(err)
	}
	for _, e := range x.experiments() {
		if e.by == onlyVerified {
			continue
		}
		var err error
		if *e.fact, err = e.run(ctx); networkError(err) != nil {
			return p, err
		}
	}
	if x.fewParts {
		p.PartLimit = profile.FewParts
	}
	return p, nil
}

// brokenPromises lists what the profile promises and the server fails to do, for operators. The objects of the
// experiments are below prefix. It returns network errors only.
func brokenPromises(ctx context.Context, s *scratch, prefix string, p driver.Profile) (broken []string, err error) {
	ctx, cancel := context.WithTimeout(ctx, verifyTimeout)
	defer cancel()
	x := newSample(s, prefix, &p)
	if err := x.putAgain(ctx); err != nil {
		return nil, networkError(err)
	}
	for _, e := range x.experiments() {
		if e.by == onlyDetected || !e.promised() {
			continue
		}
		kept, err := e.kept(ctx)
		if err != nil {
			return broken, err
		}
		if !kept {
			broken = append(broken, strings.ReplaceAll(e.name, "`", ""))
		}
	}
	return broken, nil
}
