package file

import (
	"testing"
	"time"

	"github.com/babelftp/babelftp/driver/internal/s3api"
	"github.com/babelftp/babelftp/driver/internal/s3object"
)

// TestObject compares the result of a file's Sys method with the response from S3.
func TestObject(t *testing.T) {
	stored := time.Date(2026, 1, 2, 3, 4, 5, 678, time.UTC)
	mediaType := "text/csv; charset=utf-8"
	info := New("a", &s3api.Version{Key: "a", ModTime: stored}, &s3object.Attributes{
		ContentType: &mediaType,
		Metadata:    map[string]string{s3object.MTimeKey: "1", s3object.NameLanguageKey: "fr"},
	})
	object := info.Sys().(*Object)
	if !info.ModTime().Equal(time.Unix(1, 0)) || !object.Created().Equal(stored.Truncate(time.Second)) {
		t.Errorf("modified %v, created %v", info.ModTime(), object.Created())
	}
	if object.MediaType() != mediaType || object.NameLanguage() != "fr" {
		t.Errorf("media type %q, language %q", object.MediaType(), object.NameLanguage())
	}
}
