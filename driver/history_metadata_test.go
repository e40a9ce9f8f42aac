package driver_test

import (
	"bytes"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"github.com/babelftp/babelftp/driver"
	"github.com/babelftp/babelftp/internal/testkit/s3sim"
)

// tagsHeader is the name under which the attributes of an object include its tags.
const tagsHeader = "X-Amz-Tagging"

// attributesOf returns the headers and the tags of an object, except for the metadata that the driver uses itself and
// the modification time, which is part of state.
func (m *model) attributesOf(o *s3sim.Object) string {
	if o == nil {
		return ""
	}
	h := o.Attributes()
	for _, own := range []string{"Mtime", "Babelftp-Write", "Babelftp-Copy-Of"} {
		h.Del("X-Amz-Meta-" + own)
	}
	if m.profile.LosesTags {
		h.Del(tagsHeader)
	}
	return headers(h)
}

// splitTags separates the tags of an object from its other attributes. They come last.
func splitTags(attributes string) (others, tags string) {
	others, tags, _ = strings.Cut(attributes, tagsHeader)
	return strings.TrimSuffix(others, "; "), tags
}

func headers(h http.Header) string {
	var lines []string
	for name, values := range h {
		lines = append(lines, name+": "+strings.Join(values, ", "))
	}
	slices.Sort(lines)
	return strings.Join(lines, "; ")
}

// objects returns the attributes that the configuration gives to new files.
func (h *history) objects() driver.Objects {
	if !h.Attributes {
		return driver.Objects{}
	}
	return driver.Objects{
		CacheControl: "max-age=60", StorageClass: types.StorageClassReducedRedundancy,
		Tags: map[string]string{"by": "ftp"},
	}
}

// newAttributes returns the attributes of a new file, or of the marker of a directory.
func (m *model) newAttributes(key string) string {
	h := http.Header{"Content-Type": {"application/octet-stream"}}
	objects := m.world.objects()
	if marker := strings.HasSuffix(key, "/"); marker {
		h.Set("Content-Type", "application/x-directory")
	} else if m.world.Attributes {
		h.Set("Cache-Control", objects.CacheControl)
		h.Set("X-Amz-Storage-Class", string(objects.StorageClass))
	}
	if m.world.Attributes && !m.profile.LosesTags {
		h.Set(tagsHeader, "by=ftp")
	}
	return headers(h)
}

// foreignAttributes returns the attributes that another S3 client gives to a file. They are different in each step.
func foreignAttributes(id int) s3.PutObjectInput {
	text := func(format string) *string { return aws.String(fmt.Sprintf(format, id)) }
	in := s3.PutObjectInput{
		ContentType: text("text/x-%d"), ContentDisposition: text("inline; filename=%d"), ContentLanguage: text("x-%d"),
		CacheControl:    text("max-age=%d"),
		ContentEncoding: text("x-%d"), Expires: aws.Time(time.Unix(2_000_000_000+int64(id), 0)),
		Metadata: map[string]string{"by": fmt.Sprint(id)},
		Tagging:  text("by=%d"),
	}
	const some = 3 // every third file has a time and a storage class
	if id%some == 0 {
		in.Metadata["mtime"] = fmt.Sprintf("1%d", id)
		in.StorageClass, in.ServerSideEncryption = types.StorageClassStandardIa, types.ServerSideEncryptionAes256
	}
	return in
}

// unsure reports whether S3 may return attributes of another version than the one that the driver works on.
func (m *model) unsure() bool {
	return m.profile.UncheckedSources || m.world.Torn && !m.profile.AtomicReads
}

// checkAttributes checks the attributes with which an upload has stored a file. An appended file must keep its
// attributes.
func (m *model) checkAttributes(e s3sim.Event, op *operation, content []byte) {
	got := m.attributesOf(e.New)
	var allowed []string
	for _, s := range m.replacedStates(e, op) {
		if s.exists && op.Do != "stor" && (m.unsure() || m.follows(op, s.content, content)) {
			allowed = append(allowed, s.attributes)
		}
	}
	if begins := op.Do == "stor" || op.sizeReported || bytes.Equal(content, op.content); begins || len(allowed) == 0 {
		allowed = append(allowed, m.newAttributes(e.Key))
	}
	m.wantAttributes(e, op, got, allowed)
}

// follows reports whether an upload can have turned the content old into this content.
func (m *model) follows(op *operation, old, content []byte) bool {
	return bytes.Equal(content, slices.Concat(old, op.content)) ||
		op.Do == "rest" && op.Offset <= len(old) && bytes.HasPrefix(content, slices.Concat(old[:op.Offset], op.content))
}

func (m *model) wantAttributes(e s3sim.Event, op *operation, got string, allowed []string) {
	if !slices.Contains(allowed, got) {
		m.violate(
			"metadata", "step %d (%s %q %q) has stored %q with\n%s\nand not with\n%s", op.ID, op.Do, op.Name, op.To,
			e.Key, got, strings.Join(allowed, "\nor\n"))
	}
}

// replacedStates returns the states that an operation may have replaced.
func (m *model) replacedStates(e s3sim.Event, op *operation) []state {
	states := []state{m.stateOf(e.Old, nil, nil)}
	if m.inWindow(e, op) || m.unsure() {
		states = append(states, m.alive(e.Key, op.start, m.seq)...)
	}
	return states
}

// checkTimeAttributes checks the attributes of a file whose time was set.
func (m *model) checkTimeAttributes(e s3sim.Event, op *operation) {
	var allowed []string
	for _, s := range m.replacedStates(e, op) {
		allowed = append(allowed, s.attributes)
	}
	m.wantAttributes(e, op, m.attributesOf(e.New), allowed)
}
