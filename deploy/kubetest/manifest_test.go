package kubetest

import (
	"bufio"
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	certmanager "github.com/cert-manager/cert-manager/pkg/apis/certmanager/v1"
	monitoring "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	"github.com/prometheus/prometheus/promql/parser"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	yamlutil "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"
)

// documents returns the non-empty YAML documents in a file.
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

// restricted checks the pods of an object against the level "restricted" of the Pod Security Standards.
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

// parses checks that Prometheus accepts the expressions of all alerts.
func parses(rules *monitoring.PrometheusRule) error {
	promql := parser.NewParser(parser.Options{})
	for _, group := range rules.Spec.Groups {
		for _, rule := range group.Rules {
			if _, err := promql.ParseExpr(rule.Expr.String()); err != nil {
				return fmt.Errorf("alert %s: %w", rule.Alert, err)
			}
		}
	}
	return nil
}

// helm is a single release of Helm, because the tests of deploy check that other releases render the same
// objects.
var helm = flag.String("helm", "4.3.1", "`RELEASE` of Helm that renders the chart")

// render renders the chart with a file of values.
func render(t *testing.T, values string) []byte {
	t.Helper()
	cmd := exec.CommandContext(
		t.Context(), "../../.tools/bin/helm-"+*helm, "template", "test", "../babelftp", "--namespace", "ftp",
		"--values", values)
	cmd.Env = []string{"HOME=" + t.TempDir()} // without repositories and clusters of the current user
	cmd.Stderr = t.Output()
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("helm template: %v", err)
	}
	return out
}

// manifests returns the rendered chart by file of values, and quickstart.yaml.
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

// TestManifests checks that custom resources only have fields that their operators know, and that pods meet
// the level "restricted". TestKube in deploy creates and changes all objects.
func TestManifests(t *testing.T) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		appsv1.AddToScheme, batchv1.AddToScheme, corev1.AddToScheme, certmanager.AddToScheme, monitoring.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	decoder := serializer.NewCodecFactory(scheme, serializer.EnableStrict).UniversalDeserializer()
	for file, content := range manifests(t) {
		t.Run(file, func(t *testing.T) {
			decoded := 0
			for _, document := range documents(t, content) {
				obj, _, err := decoder.Decode(document, nil, nil)
				if runtime.IsNotRegisteredError(err) {
					continue // a core object without pods
				}
				if rules, ok := obj.(*monitoring.PrometheusRule); ok && err == nil {
					err = parses(rules)
				} else if err == nil {
					err = restricted(obj)
				}
				if err != nil {
					t.Errorf("%v in\n%s", err, document)
				}
				decoded++
			}
			if decoded < 2 {
				t.Errorf("only %d objects", decoded)
			}
		})
	}
}
