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

// findProfile finds out what the bucket's server can do, from its address and from the header of its answer. Of one
// that stays unknown nothing is taken for granted: what the configuration needs, the server has to show.
func (b *Bucket) findProfile(ctx context.Context, s *scratch, header http.Header, log *slog.Logger) error {
	name := cmp.Or(b.knownProfile(), profileOfAnswer(header), "strict")
	known, _ := driver.ProfileNamed(name)
	b.setProfile(known)
	auto := b.account.profile == ""
	if auto && name == "strict" && (b.asked || b.denies()) {
		var err error
		if b.Profile, err = detectProfile(ctx, s, b.Prefix, b.Profile); err != nil {
			return b.explain(err)
		}
	}
	log = log.With("tenant", b.Tenant, "bucket", b.Name, "profile", name)
	if b.Profile.GhostPrefixes {
		b.Profile.GhostPrefixes = b.mayHaveDeleteMarkers(ctx, log)
	}
	if b.resumable && !b.Profile.Resumes() {
		log.Info("S3 server cannot resume uploads; interrupted ones are discarded")
	}
	if auto && name == "strict" {
		log.Warn(
			"S3 server is not known, and treated as the strictest; name its profile (s3.profile) if it is one of "+
				"docs/s3-servers.md",
			"server", header.Get("Server"))
		return nil
	}
	log.Info("S3 server", "server", header.Get("Server"))
	return nil
}

// setProfile sets what the bucket's server can do, also for the client that is already in use.
func (b *Bucket) setProfile(p driver.Profile) {
	b.Profile = p
	b.checksums.Store(p.Checksums)
}

// versioning asks S3 whether the bucket keeps versions of its objects. The status is empty if it never has.
func (b *Bucket) versioning(ctx context.Context) (types.BucketVersioningStatus, error) {
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	out, err := b.Client.GetBucketVersioning(ctx, &s3.GetBucketVersioningInput{Bucket: &b.Name})
	if err != nil {
		return "", err
	}
	return out.Status, nil
}

// mayHaveDeleteMarkers asks whether the bucket keeps older versions, or has kept them. A bucket of which S3 does not
// tell may.
func (b *Bucket) mayHaveDeleteMarkers(ctx context.Context, log *slog.Logger) bool {
	status, err := b.versioning(ctx)
	if err != nil {
		log.Warn(
			"S3 does not tell whether the bucket keeps older versions, so each listing looks at each of its "+
				"directories: "+
				"allow s3:GetBucketVersioning, which babelftp policy prints", "err", err)
		return true
	}
	return status != ""
}

// noticeVersions asks whether a bucket keeps versions that kept none when Verify asked, where that matters to listings.
func (b *Bucket) noticeVersions(ctx context.Context, log *slog.Logger) {
	if known, _ := driver.ProfileNamed(b.Profile.Name); !known.GhostPrefixes || b.SessionProfile().GhostPrefixes {
		return
	}
	if status, err := b.versioning(ctx); err == nil && status != "" {
		b.versioned.Store(true)
		log.Info(
			"bucket keeps older versions now: listings of later sessions look at each directory, as only delete "+
				"markers may be left of it",
			"tenant", b.Tenant, "bucket", b.Name)
	}
}

// SessionProfile is the profile of sessions that begin now. It is the one that Verify has found, with what a
// [Watcher] has noticed since.
func (b *Bucket) SessionProfile() driver.Profile {
	p := b.Profile
	p.GhostPrefixes = p.GhostPrefixes || b.versioned.Load()
	return p
}

// checkSupported returns an error if the configuration needs a feature that the server does not have.
func (b *Bucket) checkSupported() error {
	server := "its S3 server (" + b.Profile.Name + ") "
	switch {
	case b.Profile.VirtualHosts && b.account.pathStyle:
		return b.failed(nil, server+"takes the name of a bucket in the host name only", "write %s.path_style: false",
			b.keys.endpoint)
	case b.Profile.NoTags && len(b.Objects.Tags) > 0:
		return b.failed(nil, server+"has no tags, which objects.tags counts on", "remove objects.tags")
	case b.asked && !b.Profile.Resumes():
		return b.failed(nil, server+"cannot resume uploads, which resume: keep needs",
			"write resume: discard, or move to a server or a kind of bucket that can")
	}
	return nil
}
