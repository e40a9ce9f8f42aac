package s3client

import (
	"cmp"
	"context"
	"log/slog"
	"net/http"

	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"github.com/babelftp/babelftp/driver"
)

// findProfile selects the profile of the bucket's server by its address, or by the header of its response. If the
// server is unknown, it gets the strictest profile, plus the abilities that experiments prove if the configuration
// needs them.
func (b *Bucket) findProfile(ctx context.Context, s *scratch, header http.Header, log *slog.Logger) error {
	name := cmp.Or(b.knownProfile(), profileOfResponse(header), "strict")
	known, _ := driver.ProfileNamed(name)
	b.setProfile(known)
	auto := b.account.profile == ""
	if auto && name == "strict" && (b.resumeRequired || b.deniesOverwrite() || b.forState) {
		var err error
		if b.Profile, err = detectProfile(ctx, s, b.Prefix, b.Profile); err != nil {
			return b.explain(err)
		}
	}
	log = log.With("tenant", b.Tenant, "bucket", b.Name, "profile", name)
	if b.Profile.GhostPrefixes && !b.forState {
		b.Profile.GhostPrefixes = b.mayHaveDeleteMarkers(ctx, log)
	}
	if b.resumable && !b.Profile.Resumes() {
		log.Info("S3 server cannot resume uploads; interrupted uploads are discarded")
	}
	if auto && name == "strict" {
		log.Warn(
			"unknown S3 server, using the strictest profile; set s3.profile if the server is listed in "+
				"docs/s3-servers.md",
			"server", header.Get("Server"))
		return nil
	}
	log.Info("S3 server", "server", header.Get("Server"))
	return nil
}

// setProfile sets the profile, also for the client, which may already be in use.
func (b *Bucket) setProfile(p driver.Profile) {
	b.Profile = p
	b.checksums.Store(p.Checksums)
}

// versioning returns the versioning status of the bucket. It is empty if versioning was never enabled.
func (b *Bucket) versioning(ctx context.Context) (types.BucketVersioningStatus, error) {
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	out, err := b.Client.GetBucketVersioning(ctx, &s3.GetBucketVersioningInput{Bucket: &b.Name})
	if err != nil {
		return "", err
	}
	return out.Status, nil
}

// mayHaveDeleteMarkers reports whether the bucket keeps older versions or once did. If S3 does not return the status,
// the bucket may have delete markers.
func (b *Bucket) mayHaveDeleteMarkers(ctx context.Context, log *slog.Logger) bool {
	status, err := b.versioning(ctx)
	if err != nil {
		log.Warn(
			"unknown versioning status of the bucket, listings check each directory; allow s3:GetBucketVersioning, "+
				"see babelftp policy", "err", err)
		return true
	}
	return status != ""
}

// noticeVersions notices if versioning was enabled since Verify. It does nothing if versions make no difference to
// listings.
func (b *Bucket) noticeVersions(ctx context.Context, log *slog.Logger) {
	if known, _ := driver.ProfileNamed(b.Profile.Name); !known.GhostPrefixes || b.SessionProfile().GhostPrefixes {
		return
	}
	if status, err := b.versioning(ctx); err == nil && status != "" {
		b.watched.versioned.Store(true)
		log.Info(
			"versioning enabled on the bucket; listings of new sessions check each directory for delete markers",
			"tenant", b.Tenant, "bucket", b.Name)
	}
}

// SessionProfile returns the profile for new sessions: the profile that Verify found, updated with what the [Watcher]
// noticed since.
func (b *Bucket) SessionProfile() driver.Profile {
	p := b.Profile
	p.GhostPrefixes = p.GhostPrefixes || b.watched != nil && b.watched.versioned.Load()
	return p
}

// checkSupported returns an error if the configuration needs a feature that the server does not have.
func (b *Bucket) checkSupported() error {
	server := "its S3 server (" + b.Profile.Name + ") "
	switch {
	case b.Profile.VirtualHosts && b.account.pathStyle:
		return b.newError(nil, server+"accepts the bucket name only in the host name", "set %s.path_style: false",
			b.keys.endpoint)
	case b.Profile.NoTags && len(b.Objects.Tags) > 0:
		return b.newError(nil, server+"does not support tags, which objects.tags requires", "remove objects.tags")
	case b.rules.tags && (b.Profile.NoTags || b.Profile.LosesTags && !b.Profile.TagRequests):
		return b.newError(nil, server+"does not keep tags, which objects.rules requires", "use metadata instead of tags")
	case b.forState && !b.Profile.ConditionalPut:
		return b.newError(nil, server+"has no conditional writes, which state requires",
			"use a bucket on another server, see docs/s3-servers.md, or remove state")
	case b.resumeRequired && !b.Profile.Resumes():
		return b.newError(nil, server+"cannot resume uploads, which resume: keep requires",
			"set resume: discard, or use a server or bucket type that can")
	}
	return nil
}
