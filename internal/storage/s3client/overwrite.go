package s3client

import (
	"context"
	"net/http"
	"slices"

	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"github.com/babelftp/babelftp/internal/base/s3error"
	"github.com/babelftp/babelftp/internal/config"
)

// AddOverwriteMode notes the mode of a user who may write, for Verify to check. The driver gets it with the other
// options of the user. It returns false for a new mode of a bucket that has a [Watcher]: the bucket needs a
// successor, which is verified again.
func (b *Bucket) AddOverwriteMode(o config.Overwrite) bool {
	switch {
	case slices.Contains(b.overwrite, o), o == config.AllowOverwrite:
		return true
	case b.watched != nil:
		return false
	}
	b.overwrite = append(b.overwrite, o)
	return true
}

// denies tells whether files must not be replaced.
func (b *Bucket) denies() bool { return slices.Contains(b.overwrite, config.DenyOverwrite) }

// KeepsVersions tells whether the configuration counts on older versions of objects: overwrite: version, or
// versions_directory.
func (b *Bucket) KeepsVersions() bool { return slices.Contains(b.overwrite, config.VersionOverwrite) }

// checkOverwrite asks S3 whether the bucket can keep the files that must not be lost when others of their names are
// stored. A server that does not know what it is asked for ignores it without a word, so it has to show it.
func (b *Bucket) checkOverwrite(ctx context.Context, s *scratch) error {
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	if b.KeepsVersions() {
		if err := b.checkVersioning(ctx); err != nil {
			return err
		}
	}
	if !b.denies() {
		return nil
	}
	if err := b.checkCondition(ctx, s); err != nil {
		return err
	}
	// the server has shown it, whatever its profile says
	b.Profile.ExclusivePut, b.Profile.ExclusiveComplete = true, true
	return nil
}

// checkVersioning asks whether the bucket keeps older versions.
func (b *Bucket) checkVersioning(ctx context.Context) error {
	why, advice := "overwrite: version", "switch its versioning on, or write overwrite: deny"
	if b.use.Past {
		why, advice = "versions_directory", "switch its versioning on, or remove versions_directory"
	}
	kept, err := b.versioning(ctx)
	switch status := s3error.Status(err); {
	case err == nil && kept == types.BucketVersioningStatusEnabled:
		return nil
	case err == nil, status == http.StatusNotImplemented, status == http.StatusMethodNotAllowed:
		return b.failed(err, "keeps no older versions of its objects, which "+why+" counts on", "%s", advice)
	case status == http.StatusForbidden:
		return b.failed(
			err,
			"the credentials may not ask whether it keeps older versions of its objects, which "+why+" counts on",
			"%s", b.adviseDenied(err))
	}
	return b.explain(err)
}

// checkCondition has the server show that it replaces no object that a request forbids it to replace.
func (b *Bucket) checkCondition(ctx context.Context, s *scratch) error {
	p := b.Profile
	x := newSample(s, b.Prefix, &p)
	kept, err := false, x.putAgain(ctx)
	if err == nil {
		kept, err = x.shows(ctx, &p.ExclusivePut, &p.ExclusiveComplete)
	}
	switch {
	case kept:
		return nil
	case err == nil, s3error.Status(err) == http.StatusNotImplemented:
		return b.failed(
			err, "its S3 server does not know If-None-Match, which overwrite: deny counts on: files would be replaced",
			"move to a server that knows it, or write overwrite: allow or overwrite: version")
	}
	return b.explain(err)
}
