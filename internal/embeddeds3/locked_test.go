package embeddeds3_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/s3"
)

// Clients delete an object on the condition that it is still the old one, while another client replaces it. The new one stays.
func TestDeleteNextToPut(t *testing.T) {
	const keys, rounds, deleters = 4, 25, 6
	b := newBucket(t)
	var all sync.WaitGroup
	for n := range keys {
		all.Go(func() {
			key := fmt.Sprint("file", n)
			for range rounds {
				old, err := b.PutObject(t.Context(), &s3.PutObjectInput{Bucket: &b.name, Key: &key, Body: strings.NewReader("old")})
				if err != nil {
					t.Error(err)
					return
				}
				var clients sync.WaitGroup
				for range deleters {
					clients.Go(func() {
						_, _ = b.DeleteObject(t.Context(), &s3.DeleteObjectInput{Bucket: &b.name, Key: &key, IfMatch: old.ETag})
					})
				}
				_, err = b.PutObject(t.Context(), &s3.PutObjectInput{Bucket: &b.name, Key: &key, Body: strings.NewReader("new")})
				clients.Wait()
				if err != nil {
					t.Error(err)
					return
				}
				if _, err := b.HeadObject(t.Context(), &s3.HeadObjectInput{Bucket: &b.name, Key: &key}); err != nil {
					t.Errorf("%s was replaced, and is gone", key)
				}
			}
		})
	}
	all.Wait()
}
