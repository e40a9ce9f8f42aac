package kubernetes

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"runtime"
	"testing"

	"github.com/babelftp/babelftp/internal/config"
	"github.com/babelftp/babelftp/internal/testkit/kubeapi"
	"github.com/babelftp/babelftp/internal/testkit/must"
)

// BenchmarkStart reads 10,000 users in 1,000 tenants, whose credentials are in a Secret each, and 10,000 other Secrets.
// heap-MB is the memory of the Source.
func BenchmarkStart(b *testing.B) {
	api := kubeapi.New(b)
	post := func(path, body string) {
		code, text, err := api.Request(http.MethodPost, path, "application/json", body)
		if err != nil || code != http.StatusCreated {
			b.Fatal(code, text, err)
		}
	}
	const custom = "/apis/babelftp.io/v1alpha1/namespaces/a/"
	hash := base64.StdEncoding.EncodeToString(
		[]byte("$argon2id$v=19$m=65536,t=3,p=4$c29tZXNhbHRzb21lc2FsdA$RdescudvJCsgt3ub+b4dWRWJTmaaKObGRdescudvJCs"))
	for i := range 1000 {
		data := map[string]string{"access_key_id": one, "secret_access_key": one}
		for j := range 10 {
			data[fmt.Sprintf("u%d", j)] = hash
		}
		encoded, err := json.Marshal(data)
		must.OK(b, err)
		post("/api/v1/namespaces/a/secrets", fmt.Sprintf(
			`{"metadata": {"name": "t%d"}, "type": "Opaque", "data": %s}`, i, encoded))
		post(custom+Tenants, fmt.Sprintf(`{"metadata": {"name": "t%d"}, "spec": {"bucket": "bucket-%[1]d",
			"s3": {"access_key_id_secret": {"name": "t%[1]d"}, "secret_access_key_secret": {"name": "t%[1]d"}}}}`, i))
		for j := range 10 {
			spec := fmt.Sprintf(`{"tenant": "t%d", "language": "fr", "limits": {"sessions": 3},
				"password_hash_secret": {"name": "t%[1]d", "key": "u%[2]d"}}`, i, j)
			post(custom+Users, fmt.Sprintf(`{"metadata": {"name": "t%d-u%d"}, "spec": %s}`, i, j, spec))
			code, text, err := api.Request(http.MethodPatch, fmt.Sprintf(custom+"ftpusers/t%d-u%d/status", i, j),
				"application/merge-patch+json", `{"status": {"accepted": {"generation": 1, "spec": `+spec+`}}}`)
			if err != nil || code != http.StatusOK {
				b.Fatal(code, text, err)
			}
			post("/api/v1/namespaces/a/secrets", fmt.Sprintf(
				`{"metadata": {"name": "other%d-%d"}, "type": "Opaque", "data": {"k": "%s"}}`, i, j, one))
		}
	}
	for b.Loop() {
		before := heap()
		s, err := New(api.Config(), Options{})
		must.OK(b, err)
		s.Configure(&config.Kubernetes{
			Folder: b.TempDir(), Namespaces: map[string]*config.Namespace{"*": {}},
		})
		ctx, cancel := context.WithCancel(b.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			s.Run(ctx, nil)
		}()
		<-s.Known()
		b.StopTimer()
		if all := s.Current(); len(all.Users) != 10_000 || len(all.Tenants) != 1000 {
			b.Fatal(len(all.Users), len(all.Tenants))
		}
		b.ReportMetric(float64(heap()-before)/(1<<20), "heap-MB")
		cancel()
		<-done
		b.StartTimer()
	}
}

// heap returns the size of the live heap.
func heap() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
