package nlbtest

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/aws-load-balancer-controller/pkg/annotations"
	"sigs.k8s.io/aws-load-balancer-controller/pkg/config"
	"sigs.k8s.io/aws-load-balancer-controller/pkg/deploy/elbv2"
	"sigs.k8s.io/aws-load-balancer-controller/pkg/deploy/tracking"
	lbcmetrics "sigs.k8s.io/aws-load-balancer-controller/pkg/metrics/lbc"
	"sigs.k8s.io/aws-load-balancer-controller/pkg/model/core"
	ec2model "sigs.k8s.io/aws-load-balancer-controller/pkg/model/ec2"
	elbv2model "sigs.k8s.io/aws-load-balancer-controller/pkg/model/elbv2"
	elbv2modelk8s "sigs.k8s.io/aws-load-balancer-controller/pkg/model/elbv2/k8s"
	"sigs.k8s.io/aws-load-balancer-controller/pkg/networking"
	"sigs.k8s.io/aws-load-balancer-controller/pkg/service"
	"sigs.k8s.io/yaml"
)

var update = flag.Bool("update", false, "write the golden file")

const (
	prefix   = "service.beta.kubernetes.io"
	manifest = "../testdata/golden/aws.yaml"
	golden   = "../testdata/nlb.yaml"
)

// The default quotas of AWS. The quota of listeners cannot be raised. A pod counts once for each listener.
const (
	maxListeners   = 50
	maxRules       = 60 // per security group
	maxZoneTargets = 500
)

// goldenService returns the Service of the load balancer in the golden rendering, decoded and as text.
func goldenService(t *testing.T) (s corev1.Service, text string) {
	t.Helper()
	content, err := os.ReadFile(manifest)
	if err != nil {
		t.Fatal(err)
	}
	for text := range strings.SplitSeq(string(content), "\n---\n") {
		if !strings.Contains(text, "\n  type: LoadBalancer\n") {
			continue
		}
		if err := yaml.UnmarshalStrict([]byte(text), &s); err != nil {
			t.Fatal(err)
		}
		s.Namespace, s.UID = "ftp", "c0ffee00-0000-4000-8000-000000000000"
		for i := range s.Spec.Ports {
			s.Spec.Ports[i].Protocol = corev1.ProtocolTCP // the default of the API server
		}
		return s, text
	}
	t.Fatalf("%s has no load balancer", manifest)
	return s, ""
}

// suffixes returns the annotations that the controller knows, without their prefix.
func suffixes(t *testing.T) map[string]bool {
	t.Helper()
	dir, err := exec.CommandContext(
		t.Context(), "go", "list", "-f", "{{.Dir}}",
		"sigs.k8s.io/aws-load-balancer-controller/pkg/annotations").Output()
	if err != nil {
		t.Fatal(err)
	}
	file, err := parser.ParseFile(
		token.NewFileSet(), filepath.Join(strings.TrimSpace(string(dir)), "constants.go"), nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]bool{}
	ast.Inspect(file, func(n ast.Node) bool {
		if v, ok := n.(*ast.ValueSpec); ok && strings.HasPrefix(v.Names[0].Name, "SvcLBSuffix") {
			suffix, err := strconv.Unquote(v.Values[0].(*ast.BasicLit).Value)
			if err != nil {
				t.Fatal(err)
			}
			known[suffix] = true
		}
		return true
	})
	if len(known) < 30 {
		t.Fatalf("the controller has %d annotations", len(known))
	}
	return known
}

var annotation = regexp.MustCompile(regexp.QuoteMeta(prefix) + `/([A-Za-z0-9-]+)(\.[A-Za-z0-9-]+)?`)

// TestAnnotations checks the annotations in values and on pages, because a misspelled one would be ignored
// silently.
func TestAnnotations(t *testing.T) {
	known := suffixes(t)
	for _, name := range []string{manifest, "../../docs/guides/kubernetes.md"} {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		found := annotation.FindAllStringSubmatch(string(text), -1)
		for _, m := range found {
			if strings.HasPrefix(m[1], "azure-") {
				continue // another controller uses the same prefix
			}
			of := m[1] == annotations.SvcLBSuffixlsAttsAnnotationPrefix ||
				m[1] == annotations.SvcLBSuffixTargetGroupAttributes
			if !known[m[1]] || m[2] != "" && !of {
				t.Errorf("%s: the controller does not know %s", name, m[0])
			}
		}
		if len(found) == 0 {
			t.Errorf("%s has no annotation", name)
		}
	}
}

// The controller gets data from AWS through these types.
type (
	subnets struct{ networking.SubnetsResolver }
	backend struct{ networking.BackendSGProvider }
	tagging struct{ elbv2.TaggingManager }
)

func (subnets) ResolveViaNameOrIDSlice(
	_ context.Context, ids []string, _ ...networking.SubnetsResolveOption,
) ([]ec2types.Subnet, error) {
	var all []ec2types.Subnet
	for _, id := range ids {
		all = append(
			all, ec2types.Subnet{SubnetId: &id, AvailabilityZone: aws.String("eu-west-3a"), VpcId: aws.String("vpc-1"),
				CidrBlock: aws.String("192.168.0.0/24")})
	}
	return all, nil
}

func (backend) Get(context.Context, networking.ResourceType, []types.NamespacedName) (string, error) {
	return "sg-backend", nil
}

func (tagging) ListLoadBalancers(context.Context, ...tracking.TagFilter) ([]elbv2.LoadBalancerWithTags, error) {
	return nil, nil
}

// build runs the controller to build the model, with the default values of its flags.
func build(t *testing.T, s corev1.Service) core.Stack {
	t.Helper()
	parser, gates := annotations.NewSuffixAnnotationParser(prefix), config.NewFeatureGates()
	utils := service.NewServiceUtils(parser, "service.k8s.aws/resources", "service.k8s.aws/nlb", gates)
	if !utils.IsServiceSupported(&s) {
		t.Fatal("the controller ignores the Service")
	}
	builder := service.NewDefaultModelBuilder(
		parser, subnets{}, nil, "vpc-1", tracking.NewDefaultProvider("service.k8s.aws", "ftp"), tagging{}, nil, gates,
		"ftp",
		nil, nil, "ELBSecurityPolicy-2016-08", "instance", "internal", true, utils, backend{}, nil, true, false, false,
		logr.Discard(),
		lbcmetrics.NewMockCollector(), false, service.NewDefaultEnhancedBackendBuilder(nil, parser, logr.Discard()))
	stack, _, _, err := builder.Build(t.Context(), &s, lbcmetrics.NewMockCollector())
	if err != nil {
		t.Fatal(err)
	}
	return stack
}

func resources[T core.Resource](t *testing.T, stack core.Stack) []T {
	t.Helper()
	var all []T
	if err := stack.ListResources(&all); err != nil {
		t.Fatal(err)
	}
	return all
}

// plain encodes a value as JSON, so that values can be compared.
func plain(t *testing.T, v any) string {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestLoadBalancer compares the load balancer with the golden file and the quotas.
func TestLoadBalancer(t *testing.T) {
	s, text := goldenService(t)
	stack := build(t, s)

	listeners := resources[*elbv2model.Listener](t, stack)
	if n := len(listeners); n != len(s.Spec.Ports) || n > maxListeners || n*maxReplicas(t) > maxZoneTargets {
		t.Errorf(
			"%d listeners of %d pods at most: the Service has %d ports, or a load balancer takes no more", n,
			maxReplicas(t), len(s.Spec.Ports))
	}
	slices.SortFunc(listeners, func(a, b *elbv2model.Listener) int { return cmp.Compare(a.Spec.Port, b.Spec.Port) })
	groups, bindings := map[string]*elbv2model.TargetGroup{}, map[string]*elbv2modelk8s.TargetGroupBindingResource{}
	for _, group := range resources[*elbv2model.TargetGroup](t, stack) {
		groups[group.ID()] = group
	}
	for _, binding := range resources[*elbv2modelk8s.TargetGroupBindingResource](t, stack) {
		bindings[binding.ID()] = binding
	}

	// All ports are equal except for their numbers and names.
	var ports []string
	each := map[string]bool{}
	for _, l := range listeners {
		id := fmt.Sprintf("%s/%s:%d", s.Namespace, s.Name, l.Spec.Port)
		if groups[id] == nil || bindings[id] == nil {
			t.Fatalf("there is no target group %s", id)
		}
		group, rule := groups[id].Spec, bindings[id].Spec.Template.Spec.Networking.Ingress[0]
		ports = append(ports, fmt.Sprintf("%s %d -> %s", l.Spec.Protocol, l.Spec.Port, rule.Ports[0].Port))
		group.Name, group.Port = "", nil
		each[plain(t, map[string]any{
			"targetGroup": group, "listenerAttributes": l.Spec.ListenerAttributes, "podsTakeFrom": rule.From,
			"andAt": rule.Ports[1:],
		})] = true
	}
	if len(each) != 1 {
		t.Fatalf("ports differ: %v", each)
	}
	got := map[string]any{"ports": ports}
	for text := range each {
		got["eachPort"] = json.RawMessage(text)
	}
	for _, lb := range resources[*elbv2model.LoadBalancer](t, stack) {
		got["loadBalancer"] = lb.Spec
	}
	for _, sg := range resources[*ec2model.SecurityGroup](t, stack) {
		if len(sg.Spec.Ingress) > maxRules {
			t.Errorf("the security group has %d rules, and %d are allowed", len(sg.Spec.Ingress), maxRules)
		}
		var rules []string
		for _, rule := range sg.Spec.Ingress {
			rules = append(
				rules, fmt.Sprintf(
					"%s %d-%d from %s", rule.IPProtocol, *rule.FromPort, *rule.ToPort, rule.IPRanges[0].CIDRIP))
		}
		slices.Sort(rules)
		got["securityGroup"] = rules
	}
	content, err := yaml.Marshal(got)
	if err != nil {
		t.Fatal(err)
	}
	content = append(
		fmt.Appendf(
			nil,
			"# What the AWS Load Balancer Controller makes of the Service in golden/aws.yaml with the SHA-256\n# %x.\n"+
				"# To write it anew: cd deploy/nlbtest && go test -update\n", sha256.Sum256([]byte(text))), content...)
	if *update {
		if err := os.WriteFile(golden, content, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(content, want) {
		t.Errorf("the load balancer differs from %s:\n%s", golden, content)
	}
}

var replicas = regexp.MustCompile(`name: BABELFTP_CLUSTER_REPLICAS\n\s+value: "(\d+)"`)

// maxReplicas returns the maximum number of pods.
func maxReplicas(t *testing.T) int {
	t.Helper()
	content, err := os.ReadFile(manifest)
	if err != nil {
		t.Fatal(err)
	}
	m := replicas.FindSubmatch(content)
	if m == nil {
		t.Fatalf("%s has no number of replicas", manifest)
	}
	n, err := strconv.Atoi(string(m[1]))
	if err != nil {
		t.Fatal(err)
	}
	return n
}
