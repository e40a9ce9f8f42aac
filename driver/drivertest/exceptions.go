package drivertest

import "github.com/babelftp/babelftp/driver"

// An exception is a promise in docs/guarantees.md that the driver cannot keep if the server lacks a feature. A test
// checks by name whether it applies, and then expects what the driver promises instead.
type exception string

const (
	// severalPuts: if several clients store a small file under a new name at the same time, several may succeed. The
	// last one wins.
	severalPuts exception = "several-puts"

	// severalCompletions: if several clients store a file of several parts under a new name at the same time, several
	// may succeed.
	severalCompletions exception = "several-completions"

	// severalCopies: if several clients rename small files to the same new name at the same time, several may succeed.
	severalCopies exception = "several-copies"

	// severalCopiesByParts: if several clients rename files of several parts to the same new name at the same time,
	// several may succeed.
	severalCopiesByParts exception = "several-copies-by-parts"

	// deletedUnseen: a rename deletes what another client stores under the old name right before the delete.
	deletedUnseen exception = "deleted-unseen"

	// replacedByPut: storing a small file replaces what another client stores under the name after the driver's last
	// check.
	replacedByPut exception = "replaced-by-put"

	// replacedByCopy: a copy replaces what another client stores under the new name after the driver's last check.
	replacedByCopy exception = "replaced-by-copy"

	// replacedByCompletion: an upload or a copy in several parts replaces what another client stores under the name
	// after the driver's last check.
	replacedByCompletion exception = "replaced-by-completion"

	// markerHeads: describing a directory takes one more request for its marker.
	markerHeads exception = "marker-heads"

	// repeatedHeads: before a request with a condition on an ETag, checking the object takes two requests. A download
	// with several requests is followed by one too.
	repeatedHeads exception = "repeated-heads"

	// completionHeads: an upload in parts is followed by one request that checks the object.
	completionHeads exception = "completion-heads"

	// unorderedListings: names come in the order of the server, so tests compare them as sets.
	unorderedListings exception = "unordered-listings"

	// lostTags: copies and uploads in parts may have no tags.
	lostTags exception = "lost-tags"

	// computedMD5: HASH reads the file for an MD5.
	computedMD5 exception = "computed-md5"

	// computedChecksum: HASH reads the file for the other algorithms.
	computedChecksum exception = "computed-checksum"
)

// exceptions returns all exceptions, each with the reason and the profiles to which it applies.
func exceptions() map[exception]struct {
	reason  string
	applies func(p *driver.Profile) bool
} {
	return map[exception]struct {
		reason  string
		applies func(p *driver.Profile) bool
	}{
		severalPuts: {"PutObject has no condition", func(p *driver.Profile) bool { return !p.HasConditionalPut(true) }},
		severalCompletions: {
			"CompleteMultipartUpload has no condition", func(p *driver.Profile) bool { return !p.HasConditionalComplete(true) },
		},
		severalCopies: {
			"neither CopyObject nor a request that could replace it has a condition",
			func(p *driver.Profile) bool { return !p.ConditionalCopy && !p.HasConditionalPut(true) },
		},
		severalCopiesByParts: {
			"neither CopyObject nor CompleteMultipartUpload has a condition",
			func(p *driver.Profile) bool { return !p.ConditionalCopy && !p.HasConditionalComplete(true) },
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
		repeatedHeads: {"a response may combine two objects", func(p *driver.Profile) bool {
			return !p.AtomicReads
		}},
		completionHeads: {"CompleteMultipartUpload returns no ETag", func(p *driver.Profile) bool {
			return p.CompletesWithoutETag
		}},
		unorderedListings: {"S3 does not sort listings", func(p *driver.Profile) bool { return !p.SortedListings }},
		lostTags: {"CreateMultipartUpload ignores tags", func(p *driver.Profile) bool {
			return p.LosesTags && !p.TagRequests
		}},
		computedMD5:      {"the ETag is not the MD5", func(p *driver.Profile) bool { return !p.MD5ETags }},
		computedChecksum: {"S3 keeps no checksum", func(p *driver.Profile) bool { return !p.Checksums }},
	}
}

// hasException reports whether an exception applies to the server, and logs the reason.
func (x *fixture) hasException(e exception) bool {
	x.Helper()
	entry := exceptions()[e]
	if !entry.applies(&x.profile) {
		return false
	}
	x.Logf("%s: %s", e, entry.reason)
	return true
}

// requestsFor returns the number of additional requests because of an exception: one if it applies, and zero otherwise.
func (x *fixture) requestsFor(e exception) int {
	x.Helper()
	if x.hasException(e) {
		return 1
	}
	return 0
}
