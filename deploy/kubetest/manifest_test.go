package kubetest

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	certmanager "github.com/cert-manager/cert-manager/pkg/apis/certmanager/v1"
	monitoring "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	"github.com/prometheus/prometheus/promql/parser"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	yamlutil "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/warning"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	_ "k8s.io/kubernetes/pkg/apis/apps/install"
	_ "k8s.io/kubernetes/pkg/apis/autoscaling/install"
	_ "k8s.io/kubernetes/pkg/apis/batch/install"
	"k8s.io/kubernetes/pkg/apis/core"
	_ "k8s.io/kubernetes/pkg/apis/core/install"
	_ "k8s.io/kubernetes/pkg/apis/networking/install"
	_ "k8s.io/kubernetes/pkg/apis/policy/install"
	"k8s.io/kubernetes/pkg/registry/apps/deployment"
	"k8s.io/kubernetes/pkg/registry/apps/statefulset"
	"k8s.io/kubernetes/pkg/registry/autoscaling/horizontalpodautoscaler"
	"k8s.io/kubernetes/pkg/registry/batch/job"
	"k8s.io/kubernetes/pkg/registry/core/configmap"
	"k8s.io/kubernetes/pkg/registry/core/namespace"
	"k8s.io/kubernetes/pkg/registry/core/pod"
	"k8s.io/kubernetes/pkg/registry/core/secret"
	"k8s.io/kubernetes/pkg/registry/core/service"
	"k8s.io/kubernetes/pkg/registry/core/serviceaccount"
	"k8s.io/kubernetes/pkg/registry/networking/networkpolicy"
	"k8s.io/kubernetes/pkg/registry/policy/poddisruptionbudget"
	"k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"
)

// strategy is what the API server does when objects of a kind are created and changed.
type strategy interface {
	rest.RESTCreateStrategy
	rest.RESTUpdateStrategy
}

func strategies() map[string]strategy {
	return map[string]strategy{
		"ConfigMap":               configmap.Strategy,
		"Deployment":              deployment.Strategy,
		"HorizontalPodAutoscaler": horizontalpodautoscaler.Strategy,
		"Job":                     job.Strategy,
		"Namespace":               namespace.Strategy,
		"NetworkPolicy":           networkpolicy.Strategy,
		"Pod":                     pod.Strategy,
		"PodDisruptionBudget":     poddisruptionbudget.Strategy,
		"Secret":                  secret.Strategy,
		"Service":                 service.Strategy,
		"ServiceAccount":          serviceaccount.Strategy,
		"StatefulSet":             statefulset.Strategy,
	}
}

// decoders of all kinds: those of Kubernetes, which are validated too, and those of operators.
type decoders struct{ kubernetes, operators runtime.Decoder }

func newDecoders(t *testing.T) decoders {
	t.Helper()
	custom := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{certmanager.AddToScheme, monitoring.AddToScheme} {
		if err := add(custom); err != nil {
			t.Fatal(err)
		}
	}
	return decoders{
		serializer.NewCodecFactory(legacyscheme.Scheme, serializer.EnableStrict).UniversalDeserializer(),
		serializer.NewCodecFactory(custom, serializer.EnableStrict).UniversalDeserializer(),
	}
}

// documents returns the YAML documents of a file that are not empty.
func documents(t *testing.T, content []byte) [][]byte {
	t.Helper()
	var all [][]byte
	reader := yamlutil.NewYAMLReader(bufio.NewReader(bytes.NewReader(content)))
	for {
		document, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(document)) {
			if line = strings.TrimSpace(line); line != "" && line != "---" && !strings.HasPrefix(line, "#") {
				all = append(all, document)
				break
			}
		}
	}
}

// recorder keeps the warnings that the API server would send.
type recorder struct{ warnings []string }

// AddWarning implements [warning.Recorder].
func (r *recorder) AddWarning(_, text string) { r.warnings = append(r.warnings, text) }

// create does what the API server does with a new object, and returns the object as it is stored.
func (d decoders) create(document []byte) (runtime.Object, error) {
	given, kind, err := d.kubernetes.Decode(document, nil, nil)
	if runtime.IsNotRegisteredError(err) {
		return d.createCustom(document)
	}
	if err != nil {
		return nil, err
	}
	if err := restricted(given); err != nil {
		return nil, err
	}
	s, ok := strategies()[kind.Kind]
	if !ok {
		return nil, fmt.Errorf("kind %s: no rules in this test: add its strategy", kind.Kind)
	}
	obj, err := internalVersion(given)
	if err != nil {
		return nil, err
	}
	accessor, err := meta.Accessor(obj)
	if err != nil {
		return nil, err
	}
	if s, ok := obj.(*core.Service); ok {
		allocate(s)
	}
	found := &recorder{}
	ctx := warning.WithWarningRecorder(request.WithNamespace(context.Background(), "ftp"), found)
	switch namespace := accessor.GetNamespace(); {
	case !s.NamespaceScoped():
		ctx = request.WithNamespace(ctx, "")
	case namespace == "":
		accessor.SetNamespace("ftp") // that of the release
	default:
		ctx = request.WithNamespace(ctx, namespace)
	}
	ctx = request.WithRequestInfo(ctx, &request.RequestInfo{
		APIGroup: kind.Group, APIVersion: kind.Version, Resource: strings.ToLower(kind.Kind) + "s", Verb: "create",
		IsResourceRequest: true,
	})
	rest.FillObjectMetaSystemFields(accessor)
	if err := rest.BeforeCreate(s, ctx, obj); err != nil {
		return nil, err
	}
	if len(found.warnings) > 0 {
		return nil, fmt.Errorf(
			"warnings of %s %s: %s", kind.Kind, accessor.GetName(), strings.Join(found.warnings, "; "))
	}
	return obj, nil
}

// allocate sets what the API server chooses for a Service before it validates it.
func allocate(s *core.Service) {
	if s.Spec.ClusterIP != "" {
		s.Spec.ClusterIPs = []string{s.Spec.ClusterIP}
	}
	if s.Spec.Type == core.ServiceTypeLoadBalancer &&
		s.Spec.ExternalTrafficPolicy == core.ServiceExternalTrafficPolicyLocal && s.Spec.HealthCheckNodePort == 0 {
		s.Spec.HealthCheckNodePort = 31000
	}
}

// internalVersion sets the defaults and converts the object, as the API server does before it validates.
func internalVersion(given runtime.Object) (runtime.Object, error) {
	legacyscheme.Scheme.Default(given)
	return legacyscheme.Scheme.ConvertToVersion(given, runtime.InternalGroupVersioner)
}

// restricted checks the pods of an object by the level restricted of the Pod Security Standards.
func restricted(given runtime.Object) error {
	var pod *corev1.PodTemplateSpec
	switch o := given.(type) {
	case *appsv1.Deployment:
		pod = &o.Spec.Template
	case *appsv1.StatefulSet:
		pod = &o.Spec.Template
	case *batchv1.Job:
		pod = &o.Spec.Template
	case *corev1.Pod:
		pod = &corev1.PodTemplateSpec{ObjectMeta: o.ObjectMeta, Spec: o.Spec}
	default:
		return nil
	}
	evaluator, err := policy.NewEvaluator(policy.DefaultChecks(), nil)
	if err != nil {
		return err
	}
	for _, result := range evaluator.EvaluatePod(
		api.LevelVersion{Level: api.LevelRestricted, Version: api.LatestVersion()}, &pod.ObjectMeta, &pod.Spec) {
		if !result.Allowed {
			return fmt.Errorf(
				"the level restricted of the Pod Security Standards: %s: %s", result.ForbiddenReason,
				result.ForbiddenDetail)
		}
	}
	return nil
}

// createCustom decodes an object of an operator.
func (d decoders) createCustom(document []byte) (runtime.Object, error) {
	obj, _, err := d.operators.Decode(document, nil, nil)
	if err != nil {
		return nil, err
	}
	if rules, ok := obj.(*monitoring.PrometheusRule); ok {
		promql := parser.NewParser(parser.Options{})
		for _, group := range rules.Spec.Groups {
			for _, rule := range group.Rules {
				if _, err := promql.ParseExpr(rule.Expr.String()); err != nil {
					return nil, fmt.Errorf("alert %s: %w", rule.Alert, err)
				}
			}
		}
	}
	return obj, nil
}

// render renders the chart with a file of values, by the Helm that make tools builds.
func render(t *testing.T, values string) []byte {
	t.Helper()
	cmd := exec.CommandContext(
		t.Context(), "../../.tools/bin/helm", "template", "test", "../babelftp", "--namespace", "ftp", "--values", values)
	cmd.Env = []string{"HOME=" + t.TempDir()} // no repositories and no clusters of the person at this machine
	cmd.Stderr = t.Output()
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("helm template: %v", err)
	}
	return out
}

// manifests are the rendered chart, by files of values, and quickstart.yaml.
func manifests(t *testing.T) map[string][]byte {
	t.Helper()
	files, err := filepath.Glob("../babelftp/ci/*-values.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no files of values: %v", err)
	}
	quickstart, err := os.ReadFile("../quickstart.yaml")
	if err != nil {
		t.Fatal(err)
	}
	all := map[string][]byte{"quickstart.yaml": quickstart}
	for _, file := range files {
		all[filepath.Base(file)] = render(t, file)
	}
	return all
}

// TestManifests has all objects created.
func TestManifests(t *testing.T) {
	d := newDecoders(t)
	for file, content := range manifests(t) {
		t.Run(file, func(t *testing.T) {
			names := map[string]bool{}
			for _, document := range documents(t, content) {
				obj, err := d.create(document)
				if err != nil {
					t.Errorf("%v in\n%s", err, document)
					continue
				}
				accessor, err := meta.Accessor(obj)
				if err != nil {
					t.Fatal(err)
				}
				name := fmt.Sprintf("%T %s", obj, accessor.GetName())
				if names[name] {
					t.Errorf("two objects are %s", name)
				}
				names[name] = true
			}
			if len(names) < 3 {
				t.Errorf("only %d objects", len(names))
			}
		})
	}
}

// TestUpgrades changes each object of one set of values into the same object of another, as an upgrade with other
// values does. What the API server refuses to change, the chart must not.
func TestUpgrades(t *testing.T) {
	d := newDecoders(t)
	stored := func(content []byte) map[string]runtime.Object {
		objects := map[string]runtime.Object{}
		for _, document := range documents(t, content) {
			obj, err := d.create(document)
			if err != nil {
				t.Fatal(err)
			}
			accessor, err := meta.Accessor(obj)
			if err != nil {
				t.Fatal(err)
			}
			accessor.SetResourceVersion("1")
			accessor.SetUID("1")
			accessor.SetCreationTimestamp(metav1.Time{})
			if _, hook := accessor.GetAnnotations()["helm.sh/hook"]; !hook { // Helm makes hooks anew
				objects[fmt.Sprintf("%T %s", obj, accessor.GetName())] = obj
			}
		}
		return objects
	}
	changed, all := 0, manifests(t)
	for from := range all {
		for to := range all {
			old, next := stored(all[from]), stored(all[to])
			for name, obj := range next {
				before, there := old[name]
				if !there || from == to {
					continue
				}
				s, ok := strategies()[reflect.TypeOf(obj).Elem().Name()]
				if !ok {
					continue // of an operator
				}
				if service, ok := obj.(*core.Service); ok {
					// Helm leaves what the API server has chosen. A class cannot be changed, as values.yaml says.
					kept := before.(*core.Service).Spec
					service.Spec.IPFamilies, service.Spec.LoadBalancerClass = kept.IPFamilies, kept.LoadBalancerClass
				}
				ctx := request.WithNamespace(context.Background(), "ftp")
				if err := rest.BeforeUpdate(s, ctx, obj.DeepCopyObject(), before.DeepCopyObject()); err != nil {
					t.Errorf("from %s to %s: %v", from, to, err)
				}
				changed++
			}
		}
	}
	if changed == 0 {
		t.Error("no two files have an object in common")
	}
}
