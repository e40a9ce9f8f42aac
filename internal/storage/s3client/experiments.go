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
	// detectTimeout limits the requests of detectProfile, which logins may wait for, and verifyTimeout the requests of
	// brokenPromises.
	detectTimeout = 10 * time.Second
	verifyTimeout = 30 * time.Second
)

// An experiment is a row in the table of what an S3 server can show about itself. To prove one more field of a profile,
// add a row to [sample.experiments].
type experiment struct {
	// name says what an able server does, in words for an operator and in Markdown. "check --probe" reports it as
	// broken, and docs/s3-servers.md lists the profiles that lack it.
	name string

	// fact is the field that the experiment proves, in the profile of the sample.
	fact *bool

	// lack is set if the fact says that a server does not do what the name says.
	lack bool

	// after is a fact without which the experiment is not tried, and its own fact is false. It is nil if the experiment
	// depends on no other one.
	after *bool

	// by says who tries the experiment.
	by tester

	// try makes the requests, and reports whether the fact holds. An error of S3 is a result too: see run and kept.
	try func(context.Context) (bool, error)
}

// A tester is a user of the experiments: detectProfile, brokenPromises or both.
type tester int

const (
	_ tester = iota // both

	// onlyVerified is for experiments that an unknown server is not asked for. It keeps the value of "strict".
	onlyVerified

	// onlyDetected is for experiments that verify nothing, because another one fails if the profile is wrong.
	onlyDetected
)

// experiments returns the table. Each experiment leaves the object there for the next one, with x.etag as its ETag, and
// those of deletions come last. The order is also the order in which "check --probe" reports.
//
// A row does not name the IAM actions of its requests, and [PolicyFor] does not read the table. The experiments only
// make requests that the driver makes for the users of a bucket anyway, so the policy of a bucket that users write to
// allows them already. The exception is unendedUploads: it lists the parts of an upload, which the server does only for
// tenants whose users can resume uploads. A policy made of the rows would allow that to every tenant. For the others S3
// denies this request, and a denied request counts as kept. TestPolicyOfExperiments fails for a row that needs more.
func (x *sample) experiments() []experiment {
	p := x.profile
	return []experiment{
		{name: "`PutObject` with `If-None-Match`", fact: &p.ExclusivePut, try: x.exclusivePut},
		{name: "quoted ETags in conditions", fact: &p.UnquotedETags, lack: true, after: &p.ExclusivePut,
			by: onlyDetected, try: x.unquotedETags},
		{name: "`PutObject` with `If-Match`", fact: &p.ConditionalPut, after: &p.ExclusivePut, try: x.conditionalPut},
		// Swift has the condition only here, and does not keep it when two clients complete uploads at the same time.
		{name: "`CompleteMultipartUpload` with `If-None-Match`", fact: &p.ExclusiveComplete, after: &p.ExclusivePut,
			try: x.exclusiveComplete},
		{name: "`CompleteMultipartUpload` with `If-Match`", fact: &p.ConditionalComplete, after: &p.ExclusiveComplete,
			try: x.conditionalComplete},
		{name: "`CopyObject` with `If-Match`", fact: &p.ConditionalCopy, by: onlyVerified, try: x.conditionalCopy},
		{name: "ETags that are the MD5", fact: &p.MD5ETags, try: x.md5ETags},
		{name: "checksums in requests", fact: &p.Checksums, by: onlyVerified, try: x.checksums},
		{name: "sorted listings", fact: &p.SortedListings, by: onlyVerified, try: x.sortedListings},
		{name: "listings of any prefix", fact: &p.SlashPrefixes, lack: true, by: onlyVerified, try: x.slashPrefixes},
		{name: "uploads that end when they are completed", fact: &p.PersistentUploads, lack: true, try: x.unendedUploads},
		{name: "the ETag in the response to `CompleteMultipartUpload`", fact: &p.CompletesWithoutETag, lack: true,
			try: x.untoldETags},
		{name: "`UploadPartCopy`", fact: &p.PartCopy, try: x.partCopy},
		{name: "`x-amz-copy-source-if-match` of an object that was stored by parts", fact: &p.UncheckedSources,
			lack: true, after: &p.PartCopy, try: x.uncheckedSources},
		{name: "10,000 parts", fact: &x.fewParts, lack: true, try: x.refusesManyParts},
		{name: "`DeleteObject` with `If-Match`", fact: &p.ConditionalDelete, try: x.conditionalDelete},
		{name: "`DeleteObjects` with ETags", fact: &p.ConditionalBatchDelete, try: x.conditionalBatchDelete},
		{name: "`DeleteObjects`", fact: &p.BatchDelete, try: x.batchDelete},
	}
}

// promised reports whether the profile says that the server does what the name of the experiment says.
func (e experiment) promised() bool { return *e.fact != e.lack }

// run reports whether the fact holds.
func (e experiment) run(ctx context.Context) (bool, error) {
	if e.after != nil && !*e.after {
		return false, nil
	}
	return e.try(ctx)
}

// kept reports whether the server does what the name of the experiment says. A request that is denied, or fails in the
// server, shows nothing, so the server gets the benefit of the doubt. The error is one of the network.
func (e experiment) kept(ctx context.Context) (bool, error) {
	holds, err := e.run(ctx)
	switch status := s3error.Status(err); {
	case status == http.StatusNotImplemented:
		return false, nil
	case status == http.StatusForbidden, status >= http.StatusInternalServerError:
		return true, nil
	}
	return holds != e.lack, unanswered(err)
}

// shows runs the experiments on these facts, in the order of the table, until one fails. It reports whether all of the
// facts hold, and sets them in the profile of the sample. If S3 refuses a request for any other reason than the
// condition that the request tests, the error says why.
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

// unanswered returns err if it came without a response of S3, and nil otherwise.
func unanswered(err error) error {
	if s3error.Status(err) != 0 {
		return nil
	}
	return err
}

// detectProfile adds to a profile what an unknown server can do. The objects of the experiments are below a prefix of
// keys. A refusal of any kind shows that the server cannot. The error is one of the network.
func detectProfile(ctx context.Context, s *scratch, prefix string, p driver.Profile) (driver.Profile, error) {
	ctx, cancel := context.WithTimeout(ctx, detectTimeout)
	defer cancel()
	x := newSample(s, prefix, &p)
	if err := x.putAgain(ctx); err != nil { // a response means that the credentials may write nothing here
		return p, unanswered(err)
	}
	for _, e := range x.experiments() {
		if e.by == onlyVerified {
			continue
		}
		var err error
		if *e.fact, err = e.run(ctx); unanswered(err) != nil {
			return p, err
		}
	}
	if x.fewParts {
		p.PartLimit = profile.FewParts
	}
	return p, nil
}

// brokenPromises returns what the profile of a server promises and the server does not do, in words for an operator.
// The objects of the experiments are below a prefix of keys. The error is one of the network.
func brokenPromises(ctx context.Context, s *scratch, prefix string, p driver.Profile) (broken []string, err error) {
	ctx, cancel := context.WithTimeout(ctx, verifyTimeout)
	defer cancel()
	x := newSample(s, prefix, &p)
	if err := x.putAgain(ctx); err != nil {
		return nil, unanswered(err)
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
