package s3client

import (
	"context"
	"net/http"
	"slices"

	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"github.com/babelftp/babelftp/internal/base/s3error"
	"github.com/babelftp/babelftp/internal/config"
)

// AddOverwriteMode adds the mode of a user with write permission, so that Verify checks it. The driver gets the mode
// with the other options of the user. AddOverwriteMode returns false if the bucket has a [Watcher] and the mode is
// new: then the bucket must be replaced by one that is verified again.
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

// deniesOverwrite reports whether a user must not overwrite files.
func (b *Bucket) deniesOverwrite() bool { return slices.Contains(b.overwrite, config.DenyOverwrite) }

// KeepsVersions reports whether the configuration relies on older versions of objects, because of "overwrite: version"
// or versions_directory.
func (b *Bucket) KeepsVersions() bool { return slices.Contains(b.overwrite, config.VersionOverwrite) }

// checkOverwrite checks that the bucket protects files from being overwritten as the configuration requires. A server
// may silently ignore a condition that it does not know, so an experiment has to prove it.
func (b *Bucket) checkOverwrite(ctx context.Context, s *scratch) error {
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	if b.KeepsVersions() {
		if err := b.checkVersioning(ctx); err != nil {
			return err
		}
	}
	if !b.deniesOverwrite() {
		return nil
	}
	if err := b.checkCondition(ctx, s); err != nil {
		return err
	}
	// The experiment proved it, whatever the profile says.
	b.Profile.ExclusivePut, b.Profile.ExclusiveComplete = true, true
	return nil
}

// checkVersioning checks that the bucket has versioning enabled.
func (b *Bucket) checkVersioning(ctx context.Context) error {
	why, advice := "overwrite: version", "enable versioning, or set overwrite: deny"
	if b.use.Past {
		why, advice = "versions_directory", "enable versioning, or remove versions_directory"
	}
	kept, err := b.versioning(ctx)
	switch status := s3error.Status(err); {
	case err == nil && kept == types.BucketVersioningStatusEnabled:
		return nil
	case err == nil, status == http.StatusNotImplemented, status == http.StatusMethodNotAllowed:
		return b.newError(err, "versioning is not enabled, which "+why+" requires", "%s", advice)
	case status == http.StatusForbidden:
		return b.newError(
			err,
			"the credentials lack permission to read its versioning status, which "+why+" requires",
			"%s", b.adviseDenied(err))
	}
	return b.explain(err)
}

// checkCondition checks with an experiment that the server honors If-None-Match.
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
		return b.newError(
			err, "its S3 server does not support If-None-Match, which overwrite: deny requires: files would be overwritten",
			"use a server that supports it, or set overwrite: allow or overwrite: version")
	}
	return b.explain(err)
}
