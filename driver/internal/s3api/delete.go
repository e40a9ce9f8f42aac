package s3api

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"net/http"
	"slices"
	"strings"
	"syscall"
	"time"
	"unicode/utf8"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/aws/smithy-go"
	"github.com/aws/smithy-go/middleware"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/babelftp/babelftp/driver/internal/s3object"
	"github.com/babelftp/babelftp/internal/base/panics"
	"github.com/babelftp/babelftp/internal/base/s3error"
)

// errReplaced says that another object has the key of a version.
var errReplaced = s3error.New(syscall.ESTALE, "another client has replaced the object")

// errOtherDeleted says that a delete marker covers another version than the one that was to be deleted, and that
// nothing tells whose it is.
var errOtherDeleted = s3error.New(
	syscall.EAGAIN, "S3 did not answer, and the object that another client stored meanwhile is deleted")

// DeleteVersion deletes an object if it is still this version. If another object has the key, that one stays, and the
// error is ESTALE. A missing object is no error.
//
// It looks right before the delete. An object may be replaced by one of the same ETag, with other metadata for
// example, and no condition of S3 tells these two apart. On a server without conditional deletes, and for a version
// without an ETag, the delete also removes whatever another client stores between the two requests. In a bucket that
// keeps versions, that object comes back, unless S3 did not answer: another client may have deleted it as well, and
// nothing tells whose the delete marker is. The error is EAGAIN then.
//
// It never deletes by the ID of a version. That would remove the version from the history of the bucket, and S3 would
// show the one before.
func (b *Bucket) DeleteVersion(ctx context.Context, v Version) error {
	return b.deleteStill(ctx, v, b.DeleteCurrent)
}

// DeleteMade is DeleteVersion for a copy that this process has just made. There the bytes are twice, and another client
// may store them in its place at any time. So it looks at what the delete marker covers also where S3 compares ETags.
func (b *Bucket) DeleteMade(ctx context.Context, v Version) error {
	return b.deleteStill(ctx, v, func(ctx context.Context, now Version) error {
		out, err := b.deleteSince(ctx, now, b.moment(), false)
		if err != nil {
			return err
		}
		return b.lookBelow(ctx, now, out)
	})
}

// deleteStill looks at an object, and lets request delete what it has seen. The error is ESTALE if that is not this
// version any more.
func (b *Bucket) deleteStill(
	ctx context.Context, v Version, request func(context.Context, Version) error,
) error {
	now, a, err := b.Head(ctx, v.Key)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case v.ListedOtherwise(now, a.Encryption.CustomerKey):
	case !v.IsStill(now):
		return errReplaced
	}
	return request(ctx, now)
}

// IsStill tells whether another answer of S3 about the key may be about the same version: nothing that both answers
// have tells the two apart.
func (v *Version) IsStill(now Version) bool {
	return v.sameSizeAndETag(now) && v.sameTime(now) &&
		(!v.Looked || !now.Looked || v.ID == now.ID && maps.Equal(v.metadata, now.metadata))
}

// sameTime tells whether two answers may have the time of one version. Times in listings may have parts of a second.
// HeadObject rounds them, and Swift rounds up.
func (v *Version) sameTime(now Version) bool {
	later := now.ModTime.Sub(v.ModTime)
	switch {
	case v.Looked && !now.Looked:
		return later < time.Second && later >= -time.Second
	case !v.Looked && now.Looked:
		return later > -time.Second && later <= time.Second
	}
	return later.Abs() < time.Second
}

// sameSizeAndETag tells whether now is this version, by its ETag and size.
func (v *Version) sameSizeAndETag(now Version) bool {
	return v.Key == now.Key && v.Size == now.Size && sameETag(v.ETag, now.ETag)
}

// ListedOtherwise tells whether now, which a look has shown, is the object that a listing has shown as v by another
// ETag. MinIO does that for objects with a key of the customer, because listings do not have the key. Swift does it
// for copies: see OtherListedETags of the profile. The size and the time then tell.
func (v *Version) ListedOtherwise(now Version, customerKey bool) bool {
	other := v.Bucket.Profile.OtherListedETags && s3object.MD5OfETag(v.ETag) != nil &&
		s3object.MD5OfETag(now.ETag) == nil
	return !v.Looked && (customerKey || other) && v.Key == now.Key && v.Size == now.Size && v.sameTime(now)
}

// DeleteCurrent is DeleteVersion for a version that S3 has just described.
func (b *Bucket) DeleteCurrent(ctx context.Context, v Version) error {
	return b.deleteOnly(ctx, v, b.moment(), false)
}

// deleteOnly is deleteSince for a caller that means exactly this version: it looks at what the delete marker covers,
// where S3 had no condition for the delete.
func (b *Bucket) deleteOnly(ctx context.Context, v Version, begun moment, doubt bool) error {
	out, err := b.deleteSince(ctx, v, begun, doubt)
	if err != nil || b.Profile.ConditionalDelete {
		return err
	}
	return b.lookBelow(ctx, v, out)
}

// lookBelow looks what is below the delete marker that an answer tells, and removes the marker if that is another
// version than v. The error is ESTALE then.
func (b *Bucket) lookBelow(ctx context.Context, v Version, out *s3.DeleteObjectOutput) error {
	switch {
	case out.VersionId == nil && (aws.ToBool(out.DeleteMarker) || v.ID != ""):
		return b.otherDeleted(ctx, v)
	case !aws.ToBool(out.DeleteMarker) || out.VersionId == nil:
		return nil
	}
	errs := []error{nil}
	b.removeDeleteMarkers(ctx, []Version{v}, map[string]string{v.Key: *out.VersionId}, errs)
	return errs[0]
}

// otherDeleted looks what a delete marker covers that some request has made whose answer was lost, of this client or
// of another one. The error is EAGAIN where it is a later version than v, and where the look fails. It is nil where S3
// does not let these credentials look.
func (b *Bucket) otherDeleted(ctx context.Context, v Version) error {
	deleted, err := b.deletedVersions(context.WithoutCancel(ctx), []Version{v})
	now := deleted[v.Key]
	switch {
	case errors.Is(err, fs.ErrPermission):
		return nil
	case err != nil:
		return unknown(err)
	case len(now.markers) == 0 || now.markers[0] == noVersion || !now.hidesLater(&v):
		return nil
	}
	return errOtherDeleted
}

// DeleteShown deletes the object that S3 has just described as v, or what has replaced it since. A missing object is
// no error.
func (b *Bucket) DeleteShown(ctx context.Context, v Version) error {
	for range exactAttempts {
		_, err := b.deleteSince(ctx, v, b.moment(), false)
		if !errors.Is(err, syscall.ESTALE) {
			return err
		}
		switch v, _, err = b.Head(ctx, v.Key); {
		case errors.Is(err, fs.ErrNotExist):
			return nil
		case err != nil:
			return err
		}
	}
	return s3error.New(syscall.EAGAIN, "other clients replace the object all the time")
}

// deleteSince deletes an object that S3 has just described as v, on the condition of its ETag where S3 has one. With
// doubt, a request that was sent at begun or later may have deleted v.
//
// The answer is that to the last attempt. Where S3 did not answer, and the object has gone, it has no ID of a version,
// and it tells of a delete marker if the look has shown one.
//
// After an attempt without an answer it looks before it sends another one. Another object stays, whatever its bytes:
// it may have come after S3 has deleted v. The error is EAGAIN then, because it may also have replaced v, or added to
// it.
//
// In a bucket with versions each request makes a delete marker of its own. A client that brings back what it has
// deleted by mistake would otherwise remove that of another client, whose delete then has no effect.
func (b *Bucket) deleteSince(
	ctx context.Context, v Version, begun moment, doubt bool,
) (out *s3.DeleteObjectOutput, err error) {
	in := &s3.DeleteObjectInput{Bucket: &b.Name, Key: &v.Key}
	if b.Profile.ConditionalDelete {
		in.IfMatch = Condition{ETag: v.ETag}.ifMatch(&b.Profile)
	}
	for t := newTries(ctx, false); ; {
		out, err = attempt(ctx, t, lookTimeout, func(ctx context.Context) (*s3.DeleteObjectOutput, error) {
			// Listings tell no ID. GhostPrefixes then says that the bucket may have delete markers.
			if b.Profile.ReusedMarkers && (v.ID != "" || b.Profile.GhostPrefixes) && s3object.IsXMLText(v.Key) {
				return b.deleteByNewMarker(ctx, in)
			}
			return b.deleteObject(ctx, in)
		})
		if err == nil {
			return out, nil
		}
		failed := s3error.FromSDK(err)
		doubt = doubt || !s3error.NotPerformed(err)
		switch {
		case errors.Is(failed, context.Canceled):
			return nil, failed
		case errors.Is(failed, fs.ErrNotExist):
			return &s3.DeleteObjectOutput{}, nil
		}
		more := t.again(ctx, err)
		if !doubt && (!more || in.IfMatch != nil) {
			if more {
				continue
			}
			return nil, failed
		}
		switch object, left, err := b.isLeft(ctx, v, begun, doubt, failed); {
		case err != nil:
			return nil, err
		case !left:
			return &s3.DeleteObjectOutput{DeleteMarker: &object.marked}, nil
		}
		switch {
		case more:
		case doubt: // an earlier attempt may be late
			return nil, unknown(failed)
		default:
			return nil, failed
		}
	}
}

// isLeft tells by a look whether a version is still there after a request that was to delete it has failed. The error
// is ESTALE where another object has its place. With doubt S3 may have performed the request, which was sent at begun
// or later. Another object may then have come after that, and the error is EAGAIN.
func (b *Bucket) isLeft(
	ctx context.Context, v Version, begun moment, doubt bool, failed error,
) (object look, left bool, err error) {
	object, err = b.lookAfter(ctx, v.Key)
	switch {
	case err != nil:
		return object, false, unknown(failed)
	case object.HeadObjectOutput == nil:
		return object, false, nil
	case v.IsStill(b.version(v.Key, object.HeadObjectOutput)) && (!doubt || v.Name != "" || object.olderThan(begun)):
		return object, true, nil
	case !doubt:
		return object, false, errReplaced
	}
	return object, false, unknown(failed)
}

// isLockedMarker tells whether Object Lock keeps the server from deleting the marker of a directory in the simple way.
func (b *Bucket) isLockedMarker(key string, err error) bool {
	return b.Profile.LockedMarkers && strings.HasSuffix(key, "/") && s3error.HasCode(err, "InvalidRequest") &&
		s3object.IsXMLText(key)
}

// deleteObject makes one attempt to delete an object.
func (b *Bucket) deleteObject(ctx context.Context, in *s3.DeleteObjectInput) (*s3.DeleteObjectOutput, error) {
	out, err := b.client.DeleteObject(ctx, in, b.once)
	if b.isLockedMarker(*in.Key, err) {
		return b.deleteByNewMarker(ctx, in)
	}
	return out, err
}

// deleteByNewMarker is deleteObject by means of DeleteObjects, without a condition. The request is XML: of a key that
// this cannot hold, it would delete the one with other characters in their place.
func (b *Bucket) deleteByNewMarker(ctx context.Context, in *s3.DeleteObjectInput) (*s3.DeleteObjectOutput, error) {
	out, err := b.client.DeleteObjects(ctx, &s3.DeleteObjectsInput{
		Bucket: &b.Name, Delete: &types.Delete{Objects: []types.ObjectIdentifier{{Key: in.Key}}},
	}, b.once, withMD5)
	switch {
	case err != nil:
		return nil, err
	case len(out.Errors) > 0:
		return nil, errorOf(&out.Errors[0], out.ResultMetadata)
	case len(out.Deleted) == 0:
		return nil, s3error.ErrNoResult
	}
	return &s3.DeleteObjectOutput{DeleteMarker: out.Deleted[0].DeleteMarker,
		VersionId: out.Deleted[0].DeleteMarkerVersionId}, nil
}

// bringBack deletes a delete marker, so that what it covers is the current object again. The error is ESTALE where
// that has succeeded.
func (b *Bucket) bringBack(ctx context.Context, key, marker string) error {
	_, err := ask(ctx, lookTimeout, false, func(ctx context.Context) (*s3.DeleteObjectOutput, error) {
		return b.client.DeleteObject(ctx, &s3.DeleteObjectInput{Bucket: &b.Name, Key: &key, VersionId: &marker}, b.once)
	})
	if err != nil {
		return err
	}
	return errReplaced
}

// removeDeleteMarkers looks which versions new delete markers cover, whose IDs it gets by key. The versions are those
// that were to be deleted, of one directory, in the order of their keys. Where a marker covers a later version, it
// removes the marker, and puts ESTALE into errs. It does so too where other markers are above or between them: another
// client may have meant the same version, and removes its own marker. A marker stays that is below a version, because
// another client has stored that since. So does each one where S3 does not let these credentials look: the caller has
// checked the versions right before. After another error it is not known what the markers cover, and the error is
// EAGAIN. It takes a request for each page of the versions.
//
// Where another client's version may come below a marker later, it looks once more in the background. By then clients
// may have removed versions for good. So only a version counts that is above the one that was to be deleted.
func (b *Bucket) removeDeleteMarkers(ctx context.Context, versions []Version, markers map[string]string, errs []error) {
	if len(markers) == 0 {
		return
	}
	ctx = context.WithoutCancel(ctx)
	if !b.removeMarkersOver(ctx, versions, markers, errs, (*deletedVersion).hidesLater) || !b.Profile.LateVersions {
		return
	}
	left := slices.Clone(errs) // the caller's are not to change any more
	time.AfterFunc(lateLook, func() {
		ctx, done := context.WithTimeout(ctx, lookAfterTimeout)
		defer done()
		_ = panics.Catch(func() error {
			b.removeMarkersOver(ctx, versions, markers, left, func(d *deletedVersion, v *Version) bool {
				return d.left && d.hidesLater(v)
			})
			return nil
		})
	})
}

// lateLook is how long after a delete a version may still come below its marker. MinIO looks every 50 ms at most
// whether other requests to a key have ended, and with several machines every 250 ms.
const lateLook = time.Second

// removeMarkersOver makes one look for removeDeleteMarkers, and tells whether S3 lets these credentials look.
func (b *Bucket) removeMarkersOver(
	ctx context.Context, versions []Version, markers map[string]string, errs []error,
	hides func(*deletedVersion, *Version) bool,
) bool {
	deleted, err := b.deletedVersions(ctx, versions)
	if errors.Is(err, fs.ErrPermission) {
		return false
	}
	for i, v := range versions {
		marker, now := markers[v.Key], deleted[v.Key]
		switch {
		case marker == "" || marker == noVersion || errs[i] != nil:
			// or the marker of a suspended bucket, which is in the place of the object
		case err != nil:
			errs[i] = unknown(err)
		case slices.Contains(now.markers, marker) && hides(&now, &v):
			errs[i] = b.bringBack(ctx, v.Key, marker)
		}
	}
	return true
}

// isListed tells whether a listing of versions shows this one, by its ID. Listings of objects, and answers about an
// object that was stored before the bucket kept versions, have none.
func (v *Version) isListed(now Version) bool {
	if v.ID != "" {
		return v.ID == now.ID
	}
	return (now.ID == "" || !v.Looked) && v.sameSizeAndETag(now) && v.sameTime(now)
}

// mayPrecede tells whether this version may have been stored before another one of its key, which a listing of versions
// shows. The times of both tell, where one is not of an upload by parts: AWS dates that from when it began.
func (v *Version) mayPrecede(listed Version) bool {
	if v.Bucket.Profile.MarkersApart && v.ID != "" && listed.ID != "" {
		return idTime(v.ID, v.ModTime).Before(listed.ModTime)
	}
	return !listed.ModTime.Before(v.ModTime) || v.sameTime(listed) || strings.Contains(listed.ETag, "-")
}

// A deletedVersion is the latest version of a key that is no delete marker, and the markers above it.
type deletedVersion struct {
	markers []string // their IDs, the latest first
	version Version
	found   bool // there is such a version
	left    bool // the version that was to be deleted is there
}

// hidesLater tells whether the markers cover a version that was stored after v. One that was stored before v is the
// latest where somebody has removed v for good, a lifecycle rule for example.
func (d *deletedVersion) hidesLater(v *Version) bool {
	return d.found && !v.isListed(d.version) && (d.left || v.mayPrecede(d.version))
}

// deletedVersions looks what S3 has of the keys of versions, of one directory, in the order of their keys.
func (b *Bucket) deletedVersions(ctx context.Context, versions []Version) (map[string]deletedVersion, error) {
	first, last := versions[0].Key, versions[len(versions)-1].Key
	meant := map[string]*Version{}
	for i := range versions {
		meant[versions[i].Key] = &versions[i]
	}
	in := &s3.ListObjectVersionsInput{Bucket: &b.Name, Prefix: aws.String(commonPrefix(first, last)),
		EncodingType: types.EncodingTypeUrl}
	switch {
	case first == last && b.Profile.SortedListings:
		in.Prefix, in.MaxKeys = &first, aws.Int32(fewVersions) // the marker, what is below it, and markers of others
	case first == last:
		in.Prefix = &first // other keys that begin with it may come first
	case b.Profile.SortedListings && len(first) > len(*in.Prefix):
		_, end := utf8.DecodeLastRuneInString(first)
		in.KeyMarker = aws.String(first[:len(first)-end]) // comes before the key, and little is between the two
	}
	deleted := map[string]deletedVersion{}
	for {
		var order versionOrder
		out, err := ask(ctx, listTimeout, false, func(ctx context.Context) (*s3.ListObjectVersionsOutput, error) {
			return b.client.ListObjectVersions(ctx, in, b.once, order.install)
		})
		if err != nil {
			return nil, err
		}
		listed, err := order.versions(out, b.Profile.MarkersApart)
		if err != nil {
			return nil, err
		}
		end := ""
		for _, l := range listed {
			end = l.key
			v := meant[l.key]
			if v == nil {
				continue
			}
			of := deleted[l.key]
			switch {
			case !l.marker:
				version := l.version()
				if !of.found {
					of.found, of.version = true, version
				}
				of.left = of.left || v.isListed(version)
			case l.latest || !of.found: // S3 may list the markers of a page after its versions
				of.markers = append(of.markers, l.id)
			}
			deleted[l.key] = of
		}
		enough := first == last && deleted[first].found || b.Profile.SortedListings && end > last
		if enough || !aws.ToBool(out.IsTruncated) {
			return deleted, nil
		}
		if err := nextVersions(in, out); err != nil {
			return nil, err
		}
	}
}

// commonPrefix returns the bytes with which both keys begin.
func commonPrefix(a, b string) string {
	n := 0
	for n < min(len(a), len(b)) && a[n] == b[n] {
		n++
	}
	return a[:strings.LastIndex(a[:n], s3object.Separator)+1]
}

// DeleteVersions deletes versions of one directory by few requests, each like DeleteVersion. It returns an error for
// each version, ESTALE where another object has the key. The versions are in the order of their keys. If S3 has not
// listed them right before, since is the part of a listing that has them.
func (b *Bucket) DeleteVersions(ctx context.Context, since *Listing, versions []Version) []error {
	if b.Profile.ConditionalBatchDelete {
		return b.deleteBatch(ctx, versions, true, nil)
	}
	var replaced map[string]bool
	if since != nil {
		var err error
		if replaced, err = b.replaced(ctx, *since, versions); err != nil {
			return slices.Repeat([]error{err}, len(versions))
		}
	}
	still := slices.DeleteFunc(slices.Clone(versions), func(v Version) bool { return replaced[v.Key] })
	markers := map[string]string{}
	errs := b.deleteBatch(ctx, still, false, markers)
	b.removeDeleteMarkers(ctx, still, markers, errs)
	for i, v := range versions {
		if replaced[v.Key] {
			errs = slices.Insert(errs, i, errReplaced)
		}
	}
	return errs
}

// DeleteAll deletes the keys of some versions by one request, without a condition, and returns an error for each.
// Where S3 does not answer, it deletes what is left of these versions, and what has replaced one stays: the error is
// ESTALE then.
func (b *Bucket) DeleteAll(ctx context.Context, versions []Version) []error {
	return b.deleteBatch(ctx, versions, false, nil)
}

// deleteBatch deletes objects by one request, in which S3 compares the ETags if exact is set. Then it deletes those
// that are left one by one, because those errors tell more. Some servers refuse the request. Without an answer it
// looks at each object first: what another client has stored since the request stays, whatever its bytes. It does so
// too, with markers, for an object whose error is an internal one. After an error other than ESTALE it sends no more
// requests. In a bucket that keeps versions, markers gets the IDs of the delete markers that the one request has made,
// by key, unless it is nil.
func (b *Bucket) deleteBatch(ctx context.Context, versions []Version, exact bool, markers map[string]string) []error {
	errs := make([]error, len(versions))
	if len(versions) == 0 {
		return errs
	}
	in := &types.Delete{Objects: make([]types.ObjectIdentifier, len(versions))}
	for i, v := range versions {
		in.Objects[i].Key = &v.Key
		if exact {
			in.Objects[i].ETag = Condition{ETag: v.ETag}.ifMatch(&b.Profile)
		}
	}
	begun := b.moment()
	out, err := b.sendBatch(ctx, in, exact)
	var stopped error
	deleted := func(Version) bool { return false }
	remove := b.DeleteVersion
	inDoubt := func(ctx context.Context, v Version, failed error) error {
		return b.deleteDoubtful(ctx, v, begun, markers != nil, failed)
	}
	switch {
	case err == nil:
		deleted = deletedBy(out)
		for _, d := range out.Deleted {
			if markers != nil && aws.ToBool(d.DeleteMarker) {
				markers[aws.ToString(d.Key)] = aws.ToString(d.DeleteMarkerVersionId)
			}
		}
		if doubts := doubtsOf(out); markers != nil {
			remove = func(ctx context.Context, v Version) error {
				if failed := doubts[v.Key]; failed != nil {
					return inDoubt(ctx, v, failed)
				}
				return b.DeleteVersion(ctx, v)
			}
		}
	case ctx.Err() != nil:
		stopped = s3error.FromSDK(err)
	case !s3error.NotPerformed(err):
		failed := s3error.FromSDK(err)
		remove = func(ctx context.Context, v Version) error { return inDoubt(ctx, v, failed) }
	}
	for i, v := range versions {
		if deleted(v) {
			continue
		}
		if stopped == nil {
			errs[i] = remove(ctx, v)
			if errs[i] != nil && !errors.Is(errs[i], syscall.ESTALE) {
				stopped = errs[i]
			}
			continue
		}
		errs[i] = stopped
	}
	return errs
}

// sendBatch makes the one request of deleteBatch. It repeats an exact one that S3 has certainly not performed.
func (b *Bucket) sendBatch(
	ctx context.Context, in *types.Delete, exact bool,
) (out *s3.DeleteObjectsOutput, err error) {
	for t := newTries(ctx, false); ; {
		out, err = attempt(ctx, t, listTimeout, func(ctx context.Context) (*s3.DeleteObjectsOutput, error) {
			return b.client.DeleteObjects(ctx, &s3.DeleteObjectsInput{Bucket: &b.Name, Delete: in}, b.once, withMD5)
		})
		if err == nil || !exact || !s3error.NotPerformed(err) || !t.again(ctx, err) {
			return out, err
		}
	}
}

// deleteDoubtful deletes a version after a request that has failed, and by which S3 may have deleted it since begun.
// With markers it means exactly this version, as deleteOnly does.
func (b *Bucket) deleteDoubtful(ctx context.Context, v Version, begun moment, markers bool, failed error) error {
	object, left, err := b.isLeft(ctx, v, begun, true, failed)
	switch {
	case err != nil:
	case left && markers:
		err = b.deleteOnly(ctx, v, begun, true)
	case left:
		_, err = b.deleteSince(ctx, v, begun, true)
	case markers && object.marked:
		err = b.otherDeleted(ctx, v)
	}
	return err
}

// doubtsOf returns the errors of keys after which S3 may have deleted their objects all the same, or may yet do it.
func doubtsOf(out *s3.DeleteObjectsOutput) map[string]error {
	doubts := map[string]error{}
	for i := range out.Errors {
		if err := errorOf(&out.Errors[i], out.ResultMetadata); s3error.HasCode(err, "InternalError") {
			doubts[aws.ToString(out.Errors[i].Key)] = s3error.FromSDK(err)
		}
	}
	return doubts
}

// errorOf is the error of one object in an answer to DeleteObjects, as that of a request for this object alone. So a
// refusal is known to be one, and has the ID of the request.
func errorOf(e *types.Error, of middleware.Metadata) error {
	err := &smithy.GenericAPIError{Code: aws.ToString(e.Code), Message: aws.ToString(e.Message)}
	status, known := map[string]int{
		"AccessDenied": http.StatusForbidden, "MethodNotAllowed": http.StatusMethodNotAllowed,
		"InternalError": http.StatusInternalServerError, "SlowDown": http.StatusServiceUnavailable,
	}[err.Code]
	if !known {
		return err
	}
	answer := &smithyhttp.Response{Response: &http.Response{StatusCode: status, Header: http.Header{}}}
	refused := &awshttp.ResponseError{ResponseError: &smithyhttp.ResponseError{Response: answer, Err: err}}
	refused.RequestID, _ = awsmiddleware.GetRequestIDMetadata(of)
	return &smithy.OperationError{ServiceID: s3.ServiceID, OperationName: "DeleteObjects", Err: refused}
}

// deletedBy reports which versions S3 has deleted. A server that names neither a deleted key nor an error may have done
// nothing.
func deletedBy(out *s3.DeleteObjectsOutput) func(Version) bool {
	deleted := map[string]bool{}
	for _, d := range out.Deleted {
		deleted[aws.ToString(d.Key)] = true
	}
	for _, e := range out.Errors {
		deleted[aws.ToString(e.Key)] = false
	}
	return func(v Version) bool { return deleted[v.Key] }
}

// replaced lists what is there, and returns the keys of versions that another object has replaced. Missing ones are
// not among them, because a delete of them does no harm.
func (b *Bucket) replaced(ctx context.Context, in Listing, versions []Version) (map[string]bool, error) {
	last := versions[len(versions)-1].Key
	compare := func(v Version, key string) int { return strings.Compare(v.Key, key) }
	replaced := map[string]bool{}
	for page, err := range b.Pages(ctx, in) {
		if err != nil {
			return nil, err
		}
		for _, now := range page.Versions {
			if i, found := slices.BinarySearchFunc(versions, now.Key, compare); found && !versions[i].IsStill(now) {
				replaced[now.Key] = true
			}
		}
		if page.Last() >= last {
			break
		}
	}
	return replaced, nil
}

// Delete deletes the object of a key that only this process writes. A missing object is no error.
func (b *Bucket) Delete(ctx context.Context, key string) error {
	_, err := ask(ctx, lookTimeout, false, func(ctx context.Context) (*s3.DeleteObjectOutput, error) {
		return b.client.DeleteObject(ctx, &s3.DeleteObjectInput{Bucket: &b.Name, Key: &key}, b.once)
	})
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
