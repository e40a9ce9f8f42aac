package drivertest

import "github.com/babelftp/babelftp/driver"

// An exception is a promise of docs/guarantees.md that the driver cannot keep on a server without some feature. A
// test asks for it by name, and then wants what the driver promises instead.
type exception string

const (
	// severalPuts: of several clients that store a small file under a new name at the same time, several may succeed.
	// The last one wins.
	severalPuts exception = "several-puts"

	// severalCompletions is the same for files of several parts.
	severalCompletions exception = "several-completions"

	// severalCopies is the same for small files that are renamed.
	severalCopies exception = "several-copies"

	// severalCopiesByParts is the same for files that are renamed and have several parts.
	severalCopiesByParts exception = "several-copies-by-parts"

	// deletedUnseen: a rename deletes what another client stores under the old name right before the delete.
	deletedUnseen exception = "deleted-unseen"

	// replacedByPut: the driver replaces what another client stores under the name after the driver's last look.
	replacedByPut exception = "replaced-by-put"

	// replacedByCopy is the same for copies.
	replacedByCopy exception = "replaced-by-copy"

	// replacedByCompletion is the same for uploads and copies of several parts.
	replacedByCompletion exception = "replaced-by-completion"

	// markerHeads: a look at a directory takes a request for its marker in addition to the listing.
	markerHeads exception = "marker-heads"

	// repeatedHeads: before a request on the condition of an ETag, a look at the object takes two requests. After a
	// download by several requests there is one too.
	repeatedHeads exception = "repeated-heads"

	// completionHeads: after an upload by parts, a look at the object takes a request.
	completionHeads exception = "completion-heads"

	// unorderedListings: names come in the order of the server, so that tests compare them as sets.
	unorderedListings exception = "unordered-listings"

	// lostTags: copies, and uploads by parts, may have no tags.
	lostTags exception = "lost-tags"

	// computedMD5: HASH reads the file for an MD5.
	computedMD5 exception = "computed-md5"

	// computedChecksum: HASH reads the file for the other algorithms.
	computedChecksum exception = "computed-checksum"
)

// exceptions is the list of all exceptions. Each has the reason, and the profiles that it is for.
func exceptions() map[exception]struct {
	reason  string
	applies func(p *driver.Profile) bool
} {
	return map[exception]struct {
		reason  string
		applies func(p *driver.Profile) bool
	}{
		severalPuts: {"PutObject has no condition", func(p *driver.Profile) bool { return !p.PutsOn(true) }},
		severalCompletions: {
			"CompleteMultipartUpload has no condition", func(p *driver.Profile) bool { return !p.CompletesOn(true) },
		},
		severalCopies: {
			"neither CopyObject nor a request that could replace it has a condition",
			func(p *driver.Profile) bool { return !p.ConditionalCopy && !p.PutsOn(true) },
		},
		severalCopiesByParts: {
			"neither CopyObject nor CompleteMultipartUpload has a condition",
			func(p *driver.Profile) bool { return !p.ConditionalCopy && !p.CompletesOn(true) },
		},
		deletedUnseen:  {"DeleteObject has no condition", func(p *driver.Profile) bool { return !p.ConditionalDelete }},
		replacedByPut:  {"PutObject has no condition", func(p *driver.Profile) bool { return !p.ConditionalPut }},
		replacedByCopy: {"CopyObject has no condition", func(p *driver.Profile) bool { return !p.ConditionalCopy }},
		replacedByCompletion: {
			"CompleteMultipartUpload has no condition", func(p *driver.Profile) bool { return !p.ConditionalComplete },
		},
		markerHeads: {
			"the marker of a directory need not come first in a listing", func(p *driver.Profile) bool {
				return !p.SortedListings
			},
		},
		repeatedHeads: {"an answer may have parts of two objects", func(p *driver.Profile) bool {
			return !p.AtomicReads
		}},
		completionHeads: {"CompleteMultipartUpload tells no ETag", func(p *driver.Profile) bool {
			return p.CompletesWithoutETag
		}},
		unorderedListings: {"S3 does not sort listings", func(p *driver.Profile) bool { return !p.SortedListings }},
		lostTags:          {"CreateMultipartUpload takes no tags", func(p *driver.Profile) bool { return p.LosesTags }},
		computedMD5:       {"the ETag is not the MD5", func(p *driver.Profile) bool { return !p.MD5ETags }},
		computedChecksum:  {"S3 keeps no checksum", func(p *driver.Profile) bool { return !p.Checksums }},
	}
}

// hasException tells whether an exception applies to the server, and logs the reason.
func (x *fixture) hasException(e exception) bool {
	x.Helper()
	entry := exceptions()[e]
	if !entry.applies(&x.profile) {
		return false
	}
	x.Logf("%s: %s", e, entry.reason)
	return true
}

// requestsFor is how many requests more an operation takes where an exception applies: one or none.
func (x *fixture) requestsFor(e exception) int {
	x.Helper()
	if x.hasException(e) {
		return 1
	}
	return 0
}
