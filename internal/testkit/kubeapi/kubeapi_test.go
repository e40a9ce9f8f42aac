package kubeapi_test

import (
	"net/http"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	clientset "k8s.io/client-go/kubernetes"

	"github.com/babelftp/babelftp/internal/testkit/kubeapi"
	"github.com/babelftp/babelftp/internal/testkit/must"
)

const tenant = `
apiVersion: babelftp.io/v1alpha1
kind: FTPTenant
metadata: {namespace: a, name: acme}
spec: {big: 9007199254740993}`

const path = "/apis/babelftp.io/v1alpha1/namespaces/a/ftptenants/acme"

func connect(t *testing.T) (*kubeapi.Server, clientset.Interface) {
	t.Helper()
	api := kubeapi.New(t)
	client, err := clientset.NewForConfig(api.Config())
	must.OK(t, err)
	return api, client
}

// field returns a value inside the tenant.
func field(t *testing.T, api *kubeapi.Server, names ...string) any {
	t.Helper()
	o, err := api.Get(path)
	must.OK(t, err)
	var value any = map[string]any(o)
	for _, name := range names {
		m, _ := value.(map[string]any)
		value = m[name]
	}
	return value
}

func TestGenerationAndStatus(t *testing.T) {
	api := kubeapi.New(t)
	api.Apply(tenant)
	must.OK(t, api.Patch(path, `{"status": {"users": 9}}`))
	if got := field(t, api, "status"); got != nil {
		t.Errorf("a patch of the object has changed its status: %v", got)
	}
	must.OK(t, api.Patch(path+"/status", `{"spec": {"big": 1}, "status": {"users": 3}}`))
	if got := field(t, api, "spec", "big"); got == 1.0 {
		t.Error("a patch of the status has changed the spec")
	}
	if got := field(t, api, "metadata", "generation"); got != 1.0 {
		t.Errorf("generation %v after a change of the status, want 1", got)
	}
	must.OK(t, api.Patch(path, `{"metadata": {"labels": {"x": "y"}}}`))
	version := field(t, api, "metadata", "resourceVersion")
	must.OK(t, api.Patch(path+"/status", `{"status": {"users": 3}}`))
	if got := field(t, api, "metadata", "resourceVersion"); got != version {
		t.Error("a patch without a change has made a new version")
	}
	must.OK(t, api.Patch(path, `{"spec": {"bucket": "b"}}`))
	if got := field(t, api, "metadata", "generation"); got != 2.0 {
		t.Errorf("generation %v after a change of the spec, want 2", got)
	}
	if got := field(t, api, "status", "users"); got != 3.0 {
		t.Errorf("status.users is %v, want 3", got)
	}
	api.Apply(`{apiVersion: babelftp.io/v1alpha1, kind: FTPTenant, metadata: {namespace: a, name: acme}, spec: {region: r}}`)
	if got := field(t, api, "spec", "big"); got != nil {
		t.Errorf("an apply has kept a field that it does not contain any more: %v", got)
	}
	if got := field(t, api, "spec", "bucket"); got != "b" {
		t.Errorf("an apply has changed a field of another manager: %v", got)
	}
}

func TestErrors(t *testing.T) {
	api, client := connect(t)
	secrets := client.CoreV1().Secrets("a")
	ctx := t.Context()
	secret, err := secrets.Create(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "s"}}, metav1.CreateOptions{})
	must.OK(t, err)
	stale := secret.DeepCopy()
	secret.StringData = map[string]string{"k": "v"}
	_, err = secrets.Update(ctx, secret, metav1.UpdateOptions{})
	must.OK(t, err)
	cases := map[string]struct {
		is func(error) bool
		do func() error
	}{
		"create twice": {apierrors.IsAlreadyExists, func() error {
			_, err := secrets.Create(ctx, stale.DeepCopy(), metav1.CreateOptions{})
			return err
		}},
		"update of an old version": {apierrors.IsConflict, func() error {
			_, err := secrets.Update(ctx, stale, metav1.UpdateOptions{})
			return err
		}},
		"delete of another object with this name": {apierrors.IsConflict, func() error {
			uid := types.UID("other")
			return secrets.Delete(ctx, "s", metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}})
		}},
		"missing object": {apierrors.IsNotFound, func() error {
			_, err := secrets.Get(ctx, "other", metav1.GetOptions{})
			return err
		}},
		"missing resource": {apierrors.IsNotFound, func() error {
			_, err := client.AppsV1().Deployments("a").Get(ctx, "d", metav1.GetOptions{})
			return err
		}},
		"continue after the history": {apierrors.IsResourceExpired, func() error {
			secrets := client.CoreV1().Secrets("b")
			for _, name := range []string{"a", "b"} {
				_, err := secrets.Create(
					ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
				must.OK(t, err)
			}
			page, err := secrets.List(ctx, metav1.ListOptions{Limit: 1})
			must.OK(t, err)
			api.Compact()
			_, err = secrets.List(ctx, metav1.ListOptions{Limit: 1, Continue: page.Continue})
			return err
		}},
		"forbidden path": {apierrors.IsForbidden, func() error {
			api.Forbid("/api/v1/namespaces/a/secrets")
			defer api.Forbid()
			_, err := secrets.List(ctx, metav1.ListOptions{})
			return err
		}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if err := c.do(); !c.is(err) {
				t.Errorf("unexpected error %v", err)
			}
		})
	}
	if code, _, err := api.Request(http.MethodPatch, path, "application/strategic-merge-patch+json", "{}"); err != nil ||
		code != http.StatusNotFound {
		t.Errorf("strategic patch of a missing object: %d %v", code, err)
	}
}

// TestWatchSelector checks that objects appear and disappear when they begin and cease to match.
func TestWatchSelector(t *testing.T) {
	api, client := connect(t)
	w, err := client.CoreV1().ConfigMaps("a").Watch(t.Context(), metav1.ListOptions{LabelSelector: "on=yes"})
	must.OK(t, err)
	defer w.Stop()
	const cm = "{apiVersion: v1, kind: ConfigMap, metadata: {namespace: a, name: c, labels: {on: 'yes'}}, data: {k: v}}"
	api.Apply(cm)
	const path = "/api/v1/namespaces/a/configmaps/c"
	must.OK(t, api.Patch(path, `{"data": {"k": "w"}}`))
	must.OK(t, api.Patch(path, `{"metadata": {"labels": {"on": "no"}}}`))
	must.OK(t, api.Patch(path, `{"data": {"k": "x"}}`))
	must.OK(t, api.Patch(path, `{"metadata": {"labels": {"on": "yes"}}}`))
	must.OK(t, api.Delete(path))
	for _, want := range []watch.EventType{watch.Added, watch.Modified, watch.Deleted, watch.Added, watch.Deleted} {
		select {
		case event := <-w.ResultChan():
			if event.Type != want {
				t.Fatalf("event %s, want %s", event.Type, want)
			}
		case <-time.After(10 * time.Second):
			t.Fatalf("no event, want %s", want)
		}
	}
}

// TestStrategicPatch checks the patch with which client-go counts repeated events.
func TestStrategicPatch(t *testing.T) {
	_, client := connect(t)
	events := client.CoreV1().Events("a")
	_, err := events.Create(t.Context(), &corev1.Event{
		ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "e"}, Count: 1,
		InvolvedObject: corev1.ObjectReference{Kind: "FTPTenant", Name: "acme"},
	}, metav1.CreateOptions{})
	must.OK(t, err)
	_, err = events.Patch(
		t.Context(), "e", types.StrategicMergePatchType, []byte(`{"count": 2}`), metav1.PatchOptions{})
	must.OK(t, err)
	list, err := events.List(t.Context(), metav1.ListOptions{FieldSelector: "involvedObject.name=acme"})
	must.OK(t, err)
	if len(list.Items) != 1 || list.Items[0].Count != 2 {
		t.Errorf("events: %v", list.Items)
	}
}

func TestPages(t *testing.T) {
	api, client := connect(t)
	for _, name := range []string{"c", "a", "b"} {
		api.Apply("{apiVersion: v1, kind: Secret, metadata: {namespace: n, name: " + name + "}, type: Opaque}")
	}
	var names string
	options := metav1.ListOptions{Limit: 2, FieldSelector: "type!=helm.sh/release.v1"}
	for {
		page, err := client.CoreV1().Secrets("").List(t.Context(), options)
		must.OK(t, err)
		for _, secret := range page.Items {
			names += secret.Name
		}
		if options.Continue = page.Continue; page.Continue == "" {
			break
		}
		names += "|"
	}
	if names != "ab|c" {
		t.Errorf("pages %s, want ab|c", names)
	}
}
