package driver_test

import (
	"bytes"
	"context"
	"crypto/md5"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"hash/crc32"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/babelftp/babelftp/driver"
	"github.com/babelftp/babelftp/internal/base/s3error"
	"github.com/babelftp/babelftp/internal/testkit/s3sim"
	"github.com/babelftp/babelftp/internal/testkit/s3test"
)

var update = flag.Bool("update", false, "write the table of S3 servers anew")

// serversPage is the page of S3 servers.
const serversPage = "../docs/s3-servers.md"

// The marks between which the table stands on the page.
const beginTable, endTable = "<!-- begin: go test ./driver -run TestServersPage -update -->\n", "<!-- end -->\n"

// The page shows what the code goes by.
func TestServersPage(t *testing.T) {
	page, err := os.ReadFile(serversPage)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, found := strings.Cut(string(page), beginTable)
	shown, after, ended := strings.Cut(rest, endTable)
	if !found || !ended {
		t.Fatalf("%s has no place for the table", serversPage)
	}
	table := serversTable(t)
	switch {
	case shown == table:
	case *update:
		if err := os.WriteFile(serversPage, []byte(before+beginTable+table+endTable+after), 0o644); err != nil {
			t.Fatal(err)
		}
	default:
		t.Errorf(
			"%s shows another table than driver/profile/profile.go has: run go test ./driver -run "+
				"TestServersPage -update", serversPage)
	}
}

// serversTable has a line for each fact and a column for each profile.
func serversTable(t *testing.T) string {
	var all []driver.Profile
	for _, name := range driver.ProfileNames() {
		p, ok := driver.ProfileNamed(name)
		if !ok {
			t.Fatalf("no profile is called %q", name)
		}
		all = append(all, p)
	}
	var b strings.Builder
	b.WriteString("| |")
	for _, p := range all {
		fmt.Fprintf(&b, " `%s` |", p.Name)
	}
	b.WriteString("\n| --- |" + strings.Repeat(" --- |", len(all)) + "\n")
	for _, fact := range facts() {
		fmt.Fprintf(&b, "| %s |", fact.title)
		for _, p := range all {
			answer := "no"
			if fact.of(p) {
				answer = "yes"
			}
			fmt.Fprintf(&b, " %s |", answer)
		}
		b.WriteString("\n")
	}
	return b.String()
}

// A fact is one line of the table, and how a server shows it where it can.
type fact struct {
	title string
	of    func(driver.Profile) bool
	probe func(*prober) (bool, error) // nil for what a test cannot see
}

func facts() []fact {
	return []fact{
		{"`PutObject` on a condition", func(p driver.Profile) bool {
			return p.ConditionalPut
		}, (*prober).conditionalPut},
		{"conditions with quoted ETags", func(p driver.Profile) bool {
			return !p.UnquotedETags
		}, (*prober).quotedETags},
		{"`CompleteMultipartUpload` on a condition", func(p driver.Profile) bool {
			return p.ConditionalComplete
		}, (*prober).conditionalComplete},
		{"`PutObject` of new objects only", func(p driver.Profile) bool {
			return p.PutsOn(true)
		}, (*prober).exclusivePut},
		{"`CompleteMultipartUpload` of new objects only", func(p driver.Profile) bool {
			return p.CompletesOn(true)
		}, (*prober).exclusiveComplete},
		{"`CopyObject` on a condition", func(p driver.Profile) bool {
			return p.ConditionalCopy
		}, (*prober).conditionalCopy},
		{"`DeleteObject` on a condition", func(p driver.Profile) bool {
			return p.ConditionalDelete
		}, (*prober).conditionalDelete},
		{"`DeleteObjects` on a condition", func(p driver.Profile) bool {
			return p.ConditionalBatchDelete
		}, (*prober).conditionalBatchDelete},
		{"copies on the ETag of their source", func(p driver.Profile) bool {
			return !p.UncheckedSources
		}, (*prober).checkedSources},
		{"tags of copies and of uploads by parts", func(p driver.Profile) bool { return !p.LosesTags }, (*prober).tags},
		{"`CopyObject` onto itself leaves bytes alone", func(p driver.Profile) bool { return p.InPlaceCopy }, nil},
		{"`UploadPartCopy`", func(p driver.Profile) bool { return p.PartCopy }, (*prober).partCopy},
		{"`UploadPartCopy` of a key with a percent sign", func(p driver.Profile) bool {
			return p.PartCopy && !p.MisreadPartSources
		}, (*prober).percentPartCopy},
		{"parts of different sizes", func(p driver.Profile) bool { return p.UnequalParts }, (*prober).unequalParts},
		{"answers to `HeadObject` end where they say", func(p driver.Profile) bool { return !p.UnframedHeads }, nil},
		{"10,000 parts", func(p driver.Profile) bool { return !p.FewParts }, (*prober).manyParts},
		{"uploads end when they are completed", func(p driver.Profile) bool {
			return !p.UnendedUploads
		}, (*prober).endedUploads},
		{"a write that a later one overtakes is performed", func(p driver.Profile) bool {
			return !p.OvertakenAnswers
		}, nil},
		{"the ETag of a completed upload in the answer", func(p driver.Profile) bool {
			return !p.UntoldETags
		}, (*prober).toldETags},
		{"listings with the ETag of a copy of parts", func(p driver.Profile) bool {
			return !p.OtherListedETags
		}, (*prober).listedETags},
		{"interrupted uploads can be resumed", func(p driver.Profile) bool { return p.Resumes() }, nil},
		{"checksums in requests", func(p driver.Profile) bool { return p.Checksums }, (*prober).checksums},
		{"ETag is the MD5", func(p driver.Profile) bool { return p.MD5ETags }, (*prober).md5ETags},
		{"listings are sorted", func(p driver.Profile) bool { return p.SortedListings }, (*prober).sortedListings},
		{"listings of any prefix", func(p driver.Profile) bool { return !p.SlashPrefixes }, (*prober).anyPrefix},
		{"`DeleteObjects`", func(p driver.Profile) bool { return p.BatchDelete }, (*prober).batchDelete},
		{"markers and files in one `DeleteObjects`", func(p driver.Profile) bool { return p.BatchDeletesMarkers }, nil},
		{"listings without prefixes that hold delete markers only", func(p driver.Profile) bool {
			return !p.GhostPrefixes
		}, nil},
		{"`DeleteObject` of markers under Object Lock", func(p driver.Profile) bool { return !p.LockedMarkers }, nil},
		{"files in a directory that becomes empty", func(p driver.Profile) bool {
			return p.EmptyDirectoryCode == ""
		}, nil},
		{"answers of one object", func(p driver.Profile) bool { return p.AtomicReads }, nil},
		{"200 only for what is stored", func(p driver.Profile) bool {
			return !p.UnstoredAnswers
		}, (*prober).storedAnswers},
		{"ACLs and keys of KMS in policies of IAM", func(p driver.Profile) bool { return p.FullIAM }, nil},
		{"objects as they are stored, without `Accept-Encoding`", func(p driver.Profile) bool {
			return !p.Decompresses
		}, nil},
		{"signed `Accept-Encoding`", func(p driver.Profile) bool { return p.SignedAcceptEncoding }, nil},
	}
}

// The table says of MinIO and versitygw what they do.
func TestProfilesOfServers(t *testing.T) { s3test.Run(t, serverShowsProfile) }

// The table says of the servers that Debian's packages bring what they do.
func TestProfilesOfPackaged(t *testing.T) { s3test.RunPackaged(t, serverShowsProfile) }

func serverShowsProfile(t *testing.T, s *s3test.Server) {
	showsProfile(t, profile(t, s), func(t *testing.T) (*s3.Client, string) { return s.Client(), s.Bucket(t) })
}

// A simulator does what its profile says, so that the tests on it meet what they would meet on such a server.
func TestProfilesOfSimulators(t *testing.T) {
	for _, name := range driver.ProfileNames() {
		t.Run(name, func(t *testing.T) {
			p, _ := driver.ProfileNamed(name)
			// What every simulator does, whatever its profile says.
			p.Checksums, p.MisreadPartSources, p.UntoldETags, p.OtherListedETags = true, false, false, false
			showsProfile(t, p, func(*testing.T) (*s3.Client, string) {
				server := s3sim.New(s3sim.Options{Profile: p, Emptying: true})
				server.CreateBucket("bucket")
				return server.Client(nil, func(o *s3.Options) {
					o.RequestChecksumCalculation = aws.RequestChecksumCalculationWhenSupported
				}), "bucket"
			})
		})
	}
}

// showsProfile lets a server show each fact of its profile, each in an empty bucket.
func showsProfile(t *testing.T, p driver.Profile, bucket func(*testing.T) (*s3.Client, string)) {
	for _, fact := range facts() {
		if fact.probe == nil {
			continue
		}
		t.Run(strings.NewReplacer(" ", "-", "`", "").Replace(fact.title), func(t *testing.T) {
			x := &prober{ctx: t.Context(), profile: p}
			x.client, x.bucket = bucket(t)
			got, err := fact.probe(x)
			if err != nil {
				t.Fatal(err)
			}
			if want := fact.of(p); got != want {
				t.Errorf("%t; the table says %t", got, want)
			}
		})
	}
}

// A prober asks an S3 server to do something, in an empty bucket of its own. Its methods tell whether the server did.
type prober struct {
	ctx     context.Context
	client  *s3.Client
	bucket  string
	profile driver.Profile
}

const probePart = 5 << 20 // the minimum of a part that others follow

// put stores an object, and returns its ETag for a condition.
func (x *prober) put(key, content string) (etag *string, err error) {
	out, err := x.client.PutObject(
		x.ctx, &s3.PutObjectInput{Bucket: &x.bucket, Key: &key, Body: strings.NewReader(content)})
	if err != nil {
		return nil, err
	}
	return aws.String(x.profile.ETagHeader(aws.ToString(out.ETag))), nil
}

// refused tells whether a request failed because of its condition, and so that the server looks at it.
func refused(err error) (bool, error) {
	response, ok := errors.AsType[*smithyhttp.ResponseError](err)
	switch {
	case err == nil:
		return false, nil
	case ok && slices.Contains([]int{http.StatusPreconditionFailed, http.StatusConflict}, response.HTTPStatusCode()):
		return true, nil
	case ok && response.HTTPStatusCode() == http.StatusNotImplemented:
		return false, nil
	}
	return false, err
}

// both tells whether the server refuses what the condition does not allow, and does what it allows.
func both(wrong, right error) (bool, error) {
	known, err := refused(wrong)
	if err != nil || !known {
		return false, err
	}
	failed, err := refused(right)
	return !failed, err
}

func (x *prober) conditionalPut() (bool, error) {
	etag, err := x.put("a", "first")
	if err != nil {
		return false, err
	}
	put := func(in s3.PutObjectInput) error {
		in.Bucket, in.Key, in.Body = &x.bucket, aws.String("a"), strings.NewReader("second")
		_, err := x.client.PutObject(x.ctx, &in)
		return err
	}
	known, err := refused(put(s3.PutObjectInput{IfNoneMatch: aws.String("*")}))
	if err != nil || !known {
		return false, err
	}
	return both(put(s3.PutObjectInput{IfMatch: aws.String(otherETag)}), put(s3.PutObjectInput{IfMatch: etag}))
}

// quotedETags replaces an object on the condition that it has its ETag.
func (x *prober) quotedETags() (bool, error) {
	etag, err := x.put("a", "first")
	if err != nil {
		return false, err
	}
	quoted := `"` + strings.Trim(*etag, `"`) + `"`
	_, err = x.client.PutObject(x.ctx, &s3.PutObjectInput{
		Bucket: &x.bucket, Key: aws.String("a"), Body: strings.NewReader("second"), IfMatch: &quoted,
	})
	if s3error.HasCode(err, "NotImplemented") {
		return true, nil // it takes none
	}
	failed, err := refused(err)
	return !failed, err
}

// otherETag is that of no object.
const otherETag = `"0123456789abcdef0123456789abcdef"`

func (x *prober) conditionalComplete() (bool, error) {
	etag, err := x.put("a", "first")
	if err != nil {
		return false, err
	}
	complete := func(in s3.CompleteMultipartUploadInput) error {
		upload, err := x.begin("a", "second")
		if err != nil {
			return err
		}
		in.Bucket, in.Key, in.UploadId, in.MultipartUpload = &x.bucket, &upload.key, &upload.id, upload.parts
		_, err = x.client.CompleteMultipartUpload(x.ctx, &in)
		return err
	}
	known, err := refused(complete(s3.CompleteMultipartUploadInput{IfNoneMatch: aws.String("*")}))
	if err != nil || !known {
		return false, err
	}
	return both(
		complete(s3.CompleteMultipartUploadInput{IfMatch: aws.String(otherETag)}),
		complete(s3.CompleteMultipartUploadInput{IfMatch: etag}))
}

// storedAnswers completes an upload that was aborted, where an older object has the key.
func (x *prober) storedAnswers() (bool, error) {
	if _, err := x.put("a", "older"); err != nil {
		return false, err
	}
	upload, err := x.begin("a", "newer")
	if err != nil {
		return false, err
	}
	abort := &s3.AbortMultipartUploadInput{Bucket: &x.bucket, Key: &upload.key, UploadId: &upload.id}
	if _, err := x.client.AbortMultipartUpload(x.ctx, abort); err != nil {
		return false, err
	}
	_, err = x.client.CompleteMultipartUpload(x.ctx, &s3.CompleteMultipartUploadInput{
		Bucket: &x.bucket, Key: &upload.key, UploadId: &upload.id, MultipartUpload: upload.parts,
	})
	completed, err := done(err)
	return !completed, err
}

func (x *prober) conditionalCopy() (bool, error) {
	if _, err := x.put("source", "first"); err != nil {
		return false, err
	}
	etag, err := x.put("a", "second")
	if err != nil {
		return false, err
	}
	copied := func(in s3.CopyObjectInput) error {
		in.Bucket, in.Key, in.CopySource = &x.bucket, aws.String("a"), aws.String(x.bucket+"/source")
		_, err := x.client.CopyObject(x.ctx, &in)
		return err
	}
	known, err := refused(copied(s3.CopyObjectInput{IfNoneMatch: aws.String("*")}))
	if err != nil || !known {
		return false, err
	}
	return both(copied(s3.CopyObjectInput{IfMatch: aws.String(otherETag)}), copied(s3.CopyObjectInput{IfMatch: etag}))
}

// parts stores an object by parts, and returns its ETag for a condition.
func (x *prober) parts(key string) (etag *string, u *begunUpload, err error) {
	u, err = x.begin(key, strings.Repeat("1", probePart), "2")
	if err == nil {
		err = x.complete(u)
	}
	if err != nil {
		return nil, nil, err
	}
	head, err := x.client.HeadObject(x.ctx, &s3.HeadObjectInput{Bucket: &x.bucket, Key: &key})
	if err != nil {
		return nil, nil, err
	}
	return aws.String(x.profile.ETagHeader(aws.ToString(head.ETag))), u, nil
}

func (x *prober) exclusivePut() (bool, error) {
	if _, err := x.put("a", "first"); err != nil {
		return false, err
	}
	_, err := x.client.PutObject(x.ctx, &s3.PutObjectInput{
		Bucket: &x.bucket, Key: aws.String("a"), Body: strings.NewReader("second"), IfNoneMatch: aws.String("*"),
	})
	return refused(err)
}

func (x *prober) exclusiveComplete() (bool, error) {
	if _, err := x.put("a", "first"); err != nil {
		return false, err
	}
	complete := func(u *begunUpload) error {
		_, err := x.client.CompleteMultipartUpload(x.ctx, &s3.CompleteMultipartUploadInput{
			Bucket: &x.bucket, Key: &u.key, UploadId: &u.id, MultipartUpload: u.parts, IfNoneMatch: aws.String("*"),
		})
		return err
	}
	u, err := x.begin("a", "second")
	if err != nil {
		return false, err
	}
	if known, err := refused(complete(u)); err != nil || !known {
		return false, err
	}
	// Some servers look first, and do it then. A single race may not show that.
	for round := range 10 {
		if winners, err := x.race(fmt.Sprint("new-", round), complete); err != nil || winners != 1 {
			return false, err
		}
	}
	return true, nil
}

// race begins uploads of one key, completes them at the same time, and returns how many were completed.
func (x *prober) race(key string, complete func(u *begunUpload) error) (winners int, err error) {
	var uploads [8]*begunUpload
	for i := range uploads {
		if uploads[i], err = x.begin(key, "content"); err != nil {
			return 0, err
		}
	}
	var done atomic.Int32
	var wait sync.WaitGroup
	for _, u := range uploads {
		wait.Go(func() {
			if complete(u) == nil {
				done.Add(1)
			}
		})
	}
	wait.Wait()
	return int(done.Load()), nil
}

// checkedSources copies an object that was stored by parts, and a part of it, on the condition that it has an ETag.
func (x *prober) checkedSources() (bool, error) {
	etag, _, err := x.parts("source")
	if err != nil {
		return false, err
	}
	source := aws.String(x.bucket + "/source")
	whole := func(etag *string) error {
		_, err := x.client.CopyObject(
			x.ctx, &s3.CopyObjectInput{Bucket: &x.bucket, Key: aws.String("a"), CopySource: source,
				CopySourceIfMatch: etag})
		return err
	}
	if checked, err := both(whole(aws.String(otherETag)), whole(etag)); err != nil || !checked || !x.profile.PartCopy {
		return checked, err
	}
	u, err := x.begin("b")
	if err != nil {
		return false, err
	}
	part := func(etag *string) error {
		_, err := x.client.UploadPartCopy(x.ctx, &s3.UploadPartCopyInput{
			Bucket: &x.bucket, Key: &u.key, UploadId: &u.id, PartNumber: aws.Int32(1), CopySource: source,
			CopySourceIfMatch: etag,
		})
		return err
	}
	return both(part(aws.String(otherETag)), part(etag))
}

// tags begins an upload with a tag.
func (x *prober) tags() (bool, error) {
	created, err := x.client.CreateMultipartUpload(x.ctx, &s3.CreateMultipartUploadInput{
		Bucket: &x.bucket, Key: aws.String("a"), Tagging: aws.String("color=red"),
		ChecksumAlgorithm: types.ChecksumAlgorithmCrc32,
	})
	if err != nil {
		return done(err)
	}
	u := &begunUpload{key: "a", id: *created.UploadId, parts: &types.CompletedMultipartUpload{}}
	if err = x.part(u, 1, "1"); err == nil {
		err = x.complete(u)
	}
	if err != nil {
		return false, err
	}
	out, err := x.client.GetObjectTagging(x.ctx, &s3.GetObjectTaggingInput{Bucket: &x.bucket, Key: &u.key})
	return err == nil && len(out.TagSet) == 1, err
}

func (x *prober) manyParts() (bool, error) {
	u, err := x.begin("a")
	if err != nil {
		return false, err
	}
	return done(x.part(u, 10_000, "last"))
}

func (x *prober) endedUploads() (bool, error) {
	_, u, err := x.parts("a")
	if err != nil {
		return false, err
	}
	_, err = x.client.ListParts(x.ctx, &s3.ListPartsInput{Bucket: &x.bucket, Key: &u.key, UploadId: &u.id})
	listed, err := done(err)
	return !listed, err
}

// toldETags completes an upload.
func (x *prober) toldETags() (bool, error) {
	u, err := x.begin("a", "content")
	if err != nil {
		return false, err
	}
	out, err := x.client.CompleteMultipartUpload(x.ctx, &s3.CompleteMultipartUploadInput{
		Bucket: &x.bucket, Key: &u.key, UploadId: &u.id, MultipartUpload: u.parts,
	})
	return err == nil && aws.ToString(out.ETag) != "", err
}

// listedETags lists the copy of an object that was stored by parts.
func (x *prober) listedETags() (bool, error) {
	if _, _, err := x.parts("a"); err != nil {
		return false, err
	}
	if _, err := x.client.CopyObject(x.ctx, &s3.CopyObjectInput{
		Bucket: &x.bucket, Key: aws.String("copy"), CopySource: aws.String(x.bucket + "/a"),
	}); err != nil {
		return false, err
	}
	head, err := x.client.HeadObject(x.ctx, &s3.HeadObjectInput{Bucket: &x.bucket, Key: aws.String("copy")})
	if err != nil {
		return false, err
	}
	list, err := x.client.ListObjectsV2(x.ctx, &s3.ListObjectsV2Input{Bucket: &x.bucket})
	if err != nil {
		return false, err
	}
	return slices.ContainsFunc(list.Contents, func(o types.Object) bool {
		return *o.Key == "copy" && aws.ToString(o.ETag) == aws.ToString(head.ETag)
	}), nil
}

// conditionalDelete deletes an object that was stored by parts.
func (x *prober) conditionalDelete() (bool, error) {
	etag, _, err := x.parts("a")
	if err != nil {
		return false, err
	}
	one := func(etag *string) error {
		_, err := x.client.DeleteObject(
			x.ctx, &s3.DeleteObjectInput{Bucket: &x.bucket, Key: aws.String("a"), IfMatch: etag})
		return err
	}
	return both(one(aws.String(otherETag)), one(etag))
}

func (x *prober) conditionalBatchDelete() (bool, error) {
	etag, err := x.put("a", "first")
	if err != nil {
		return false, err
	}
	batch := func(etag *string) error {
		out, err := x.client.DeleteObjects(x.ctx, &s3.DeleteObjectsInput{
			Bucket: &x.bucket, Delete: &types.Delete{Objects: []types.ObjectIdentifier{{Key: aws.String("a"),
				ETag: etag}}},
		}, withMD5)
		if err == nil && len(out.Errors) > 0 {
			refused := &http.Response{StatusCode: http.StatusPreconditionFailed}
			return &smithyhttp.ResponseError{Response: &smithyhttp.Response{Response: refused}}
		}
		return err
	}
	known, err := refused(batch(aws.String(otherETag)))
	if s3error.HasCode(err, "MalformedXML") {
		return false, nil // it knows no ETags there
	}
	if err != nil || !known {
		return false, err
	}
	return done(batch(etag))
}

// withMD5 sends a Content-MD5, as the driver does with DeleteObjects.
func withMD5(o *s3.Options) {
	o.APIOptions = append(o.APIOptions, smithyhttp.AddContentChecksumMiddleware)
}

// A begunUpload is a multipart upload whose parts S3 has.
type begunUpload struct {
	key, id string
	parts   *types.CompletedMultipartUpload
}

// begin uploads parts of a key, with numbers from 1 on.
func (x *prober) begin(key string, contents ...string) (*begunUpload, error) {
	in := &s3.CreateMultipartUploadInput{Bucket: &x.bucket, Key: &key}
	if len(contents) > 0 {
		in.ChecksumAlgorithm = types.ChecksumAlgorithmCrc32 // parts that are copied have none
	}
	created, err := x.client.CreateMultipartUpload(x.ctx, in)
	if err != nil {
		return nil, err
	}
	u := &begunUpload{key: key, id: *created.UploadId, parts: &types.CompletedMultipartUpload{}}
	for i, content := range contents {
		if err := x.part(u, int32(i+1), content); err != nil {
			return nil, err
		}
	}
	return u, nil
}

func (x *prober) part(u *begunUpload, number int32, content string) error {
	part, err := x.client.UploadPart(x.ctx, &s3.UploadPartInput{
		Bucket: &x.bucket, Key: &u.key, UploadId: &u.id, PartNumber: &number, Body: strings.NewReader(content),
	})
	if err == nil {
		u.parts.Parts = append(
			u.parts.Parts, types.CompletedPart{PartNumber: &number, ETag: part.ETag, ChecksumCRC32: part.ChecksumCRC32})
	}
	return err
}

func (x *prober) complete(u *begunUpload) error {
	_, err := x.client.CompleteMultipartUpload(x.ctx, &s3.CompleteMultipartUploadInput{
		Bucket: &x.bucket, Key: &u.key, UploadId: &u.id, MultipartUpload: u.parts,
	})
	return err
}

// done tells whether a request was done. An error of S3 says that it cannot be.
func done(err error) (bool, error) {
	if _, answered := errors.AsType[*smithyhttp.ResponseError](err); err != nil && !answered {
		return false, err
	}
	return err == nil, nil
}

func (x *prober) partCopy() (bool, error) { return x.copyPart("source", "source") }

// percentPartCopy copies from a key that is another one when it is decoded twice. An invalid one could end the server.
func (x *prober) percentPartCopy() (bool, error) { return x.copyPart("%41", "%2541") }

// copyPart makes an upload of a copy. The source is the key in percent-encoding.
func (x *prober) copyPart(key, source string) (bool, error) {
	if _, err := x.put(key, strings.Repeat("s", probePart)); err != nil {
		return false, err
	}
	u, err := x.begin("a")
	if err != nil {
		return false, err
	}
	out, err := x.client.UploadPartCopy(x.ctx, &s3.UploadPartCopyInput{
		Bucket: &x.bucket, Key: &u.key, UploadId: &u.id, PartNumber: aws.Int32(1),
		CopySource: aws.String(x.bucket + "/" + source),
	})
	if err != nil {
		return done(err)
	}
	u.parts.Parts = []types.CompletedPart{{PartNumber: aws.Int32(1), ETag: out.CopyPartResult.ETag}}
	return done(x.complete(u))
}

func (x *prober) unequalParts() (bool, error) {
	u, err := x.begin("a", strings.Repeat("1", probePart), strings.Repeat("2", probePart+1), "3")
	if err != nil {
		return false, err
	}
	return done(x.complete(u))
}

func (x *prober) checksums() (bool, error) {
	crc := crc32.Checksum([]byte("first"), crc32.MakeTable(crc32.Castagnoli))
	sum := base64.StdEncoding.EncodeToString(binary.BigEndian.AppendUint32(nil, crc))
	put := func(sum string) error {
		_, err := x.client.PutObject(x.ctx, &s3.PutObjectInput{
			Bucket: &x.bucket, Key: aws.String("a"), Body: strings.NewReader("first"), ChecksumCRC32C: &sum,
		})
		return err
	}
	if wrong, err := done(put("AAAAAA==")); err != nil || wrong {
		return false, err
	}
	if err := put(sum); err != nil {
		return false, err
	}
	out, err := x.client.HeadObject(x.ctx, &s3.HeadObjectInput{
		Bucket: &x.bucket, Key: aws.String("a"), ChecksumMode: types.ChecksumModeEnabled,
	})
	if err != nil {
		return false, err
	}
	return aws.ToString(out.ChecksumCRC32C) == sum, nil
}

func (x *prober) md5ETags() (bool, error) {
	etag, err := x.put("a", "first")
	sum := md5.Sum([]byte("first"))
	return strings.Trim(aws.ToString(etag), `"`) == hex.EncodeToString(sum[:]), err
}

func (x *prober) sortedListings() (bool, error) {
	keys := []string{"z", "é", "a/b", "a.b", "a-", "a b", "b"}
	for _, key := range keys {
		if _, err := x.put(key, ""); err != nil {
			return false, err
		}
	}
	out, err := x.client.ListObjectsV2(x.ctx, &s3.ListObjectsV2Input{Bucket: &x.bucket})
	if err != nil {
		return false, err
	}
	return len(out.Contents) == len(keys) && slices.IsSortedFunc(out.Contents, func(a, b types.Object) int {
		return bytes.Compare([]byte(*a.Key), []byte(*b.Key))
	}), nil
}

func (x *prober) anyPrefix() (bool, error) {
	if _, err := x.put("dir/name.one", ""); err != nil {
		return false, err
	}
	out, err := x.client.ListObjectsV2(
		x.ctx, &s3.ListObjectsV2Input{Bucket: &x.bucket, Prefix: aws.String("dir/name.")})
	if err != nil {
		return done(err)
	}
	return len(out.Contents) == 1, nil
}

func (x *prober) batchDelete() (bool, error) {
	if _, err := x.put("a", ""); err != nil {
		return false, err
	}
	out, err := x.client.DeleteObjects(x.ctx, &s3.DeleteObjectsInput{
		Bucket: &x.bucket, Delete: &types.Delete{Objects: []types.ObjectIdentifier{{Key: aws.String("a")}}},
	}, withMD5)
	if err != nil {
		return done(err)
	}
	return len(out.Errors) == 0, nil
}
