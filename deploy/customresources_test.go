package deploy

import (
	"fmt"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
)

var customResources = filepath.Join(chart, "ci", "customresources-values.yaml")

// TestDefinitionsAreOptional checks that people without custom resources and without rights in the cluster install no
// definitions and no roles.
func TestDefinitionsAreOptional(t *testing.T) {
	for values, want := range map[string]int{minimal: 0, customResources: 2} {
		definitions, roles := 0, 0
		for _, o := range parse(t, helmTemplate(t, "--values", values, "--include-crds")).objects {
			if o.Kind == "CustomResourceDefinition" {
				definitions++
			}
			if strings.Contains(o.Kind, "Role") {
				roles++
			}
		}
		if definitions != want || (roles > 0) != (want > 0) {
			t.Errorf("%s: got %d definitions and %d roles, want %d definitions", values, definitions, roles, want)
		}
	}
}

// rights returns the rights that the roles of the release give by subject and namespace, one line for each resource.
func rights(t *testing.T, r release) map[string][]string {
	t.Helper()
	all := map[string][]string{}
	for _, binding := range r.objects {
		if !strings.HasSuffix(binding.Kind, "RoleBinding") {
			continue
		}
		i := slices.IndexFunc(r.objects, func(o object) bool {
			return o.Kind == binding.RoleRef.Kind && o.Metadata.Name == binding.RoleRef.Name &&
				o.Metadata.Namespace == binding.Metadata.Namespace
		})
		if i < 0 || strings.TrimSuffix(binding.Kind, "Binding") != binding.RoleRef.Kind {
			t.Errorf("%s %s refers to a role that does not exist", binding.Kind, binding.Metadata.Name)
			continue
		}
		scope := binding.Metadata.Namespace
		if binding.Kind == "ClusterRoleBinding" {
			scope = "*"
		}
		for _, subject := range binding.Subjects {
			who := fmt.Sprintf("%s %s/%s in %s", subject.Kind, subject.Namespace, subject.Name, scope)
			for _, rule := range r.objects[i].Rules {
				group := strings.TrimPrefix(rule.APIGroups[0]+"/", "/")
				for _, resource := range rule.Resources {
					right := append(slices.Clone(rule.Verbs), rule.ResourceNames...)
					all[who] = append(all[who], group+resource+": "+strings.Join(right, " "))
				}
			}
		}
	}
	return all
}

// TestRights checks the rights of the pods and of editors, which are the least that work.
func TestRights(t *testing.T) {
	watch := []string{
		"babelftp.io/ftptenants: get list watch", "babelftp.io/ftpusers: get list watch",
		"babelftp.io/ftptenants/status: update", "babelftp.io/ftpusers/status: update",
		"secrets: get list watch", "configmaps: get list watch", "events: create patch",
	}
	edit := []string{
		"babelftp.io/ftptenants: get list watch create update patch delete deletecollection",
		"babelftp.io/ftpusers: get list watch create update patch delete deletecollection",
	}
	leader := []string{
		"coordination.k8s.io/leases: get update test-babelftp", "coordination.k8s.io/leases: create",
	}
	const pods = "ServiceAccount ftp/test-babelftp in "
	for _, tt := range []struct {
		name, set string
		want      map[string][]string
	}{
		{"namespaces", "replicas=2", map[string][]string{
			pods: leader, pods + "team-a": watch, pods + "team-b": watch,
			"Group /team-a in team-a": edit, "ServiceAccount argocd/deployer in team-a": edit,
		}},
		{"all-namespaces", "customResources.namespaces.\\*.hosts={*.example.com},customResources.editors=null", map[string][]string{
			pods: leader, pods + "*": watch,
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := rights(t, render(t, customResources, tt.set)); !reflect.DeepEqual(got, tt.want) {
				t.Errorf("got %q\nwant %q", got, tt.want)
			}
		})
	}
}

// TestAggregatedRoles checks which roles of Kubernetes get which rights.
func TestAggregatedRoles(t *testing.T) {
	r := render(t, customResources, "customResources.aggregateRoles=true")
	const to = "rbac.authorization.k8s.io/aggregate-to-"
	for name, want := range map[string][]string{"edit": {"admin", "edit"}, "view": {"view"}} {
		role := r.find("ClusterRole", "ftp-test-babelftp-"+name)
		var got []string
		for label := range role.Metadata.Labels {
			if target, ok := strings.CutPrefix(label, to); ok {
				got = append(got, target)
			}
		}
		if slices.Sort(got); !slices.Equal(got, want) {
			t.Errorf("%s is added to %v, want %v", name, got, want)
		}
		if len(role.Rules) != 1 || slices.Contains(role.Rules[0].Verbs, "create") != (name == "edit") ||
			slices.ContainsFunc(role.Rules[0].Resources, func(r string) bool { return strings.Contains(r, "status") }) {
			t.Errorf("%s: %+v", name, role.Rules)
		}
	}
}

// TestPodWithCustomResources checks that only the container of the server gets a token, and that its folder is in
// memory.
func TestPodWithCustomResources(t *testing.T) {
	r := render(t, customResources, "extraContainers[0].name=logs,extraContainers[0].image=busybox")
	c := r.container()
	if !slices.Equal(c.Command, []string{"babelftp-kubernetes"}) || !slices.Equal(c.Args, []string{"--config", configFile}) {
		t.Errorf("the container runs %q %q", c.Command, c.Args)
	}
	for name, pod := range r.pods() {
		for i, c := range pod.Containers {
			var mounted []string
			for _, m := range c.VolumeMounts {
				if strings.HasPrefix(m.Name, "kubernetes") {
					mounted = append(mounted, m.MountPath)
				}
			}
			var want []string
			if name == "server" && i == 0 {
				want = []string{"/run/babelftp/kubernetes", "/var/run/secrets/kubernetes.io/serviceaccount"}
			}
			if !slices.Equal(mounted, want) {
				t.Errorf("container %d of the pod of the %s mounts %q, want %q", i, name, mounted, want)
			}
		}
	}
	i := slices.IndexFunc(r.pod().Volumes, func(v volume) bool { return v.Name == "kubernetes" })
	if i < 0 || r.pod().Volumes[i].EmptyDir.Medium != "Memory" {
		t.Errorf("got the volumes %+v, want one in memory", r.pod().Volumes)
	}
}

// TestNamespaces checks that the configuration has the border of each namespace.
func TestNamespaces(t *testing.T) {
	cfg := loadConfig(t, render(t, customResources, "config.tenants=null"))
	k := cfg.Kubernetes
	if k.Folder == "" || len(k.Namespaces) != 2 || k.NamespaceOf("other") != nil {
		t.Errorf("got %+v", k)
	}
	if a := k.NamespaceOf("team-a"); a == nil || !slices.Equal(a.Buckets, []string{"team-a-*", "shared/team-a/*"}) ||
		!slices.Equal(a.Hosts, []string{"*.team-a.example.com"}) || len(a.Addresses) != 1 || len(a.ARNs) != 1 {
		t.Errorf("got %+v for team-a", a)
	}
	if b := k.NamespaceOf("team-b"); b == nil || len(b.Buckets) != 0 {
		t.Errorf("got %+v for team-b", b)
	}
}

// TestResourcesFromValues checks the FTPTenants and FTPUsers that the chart creates.
func TestResourcesFromValues(t *testing.T) {
	r := render(t, customResources)
	for kind, name := range map[string]string{"FTPTenant": "archive", "FTPUser": "bob"} {
		if o := r.find(kind, name); o.Metadata.Namespace != "team-b" {
			t.Errorf("%s %s: got %+v", kind, name, o.Metadata)
		}
	}
}

func TestRefusedCustomResources(t *testing.T) {
	for _, tt := range []struct{ name, set, want string }{
		{"no-namespaces", "customResources.namespaces=null", "customResources.namespaces is empty: name the namespaces"},
		{"unwatched-namespace", "customResources.users.other.eve.tenant=acme",
			"customResources.users.other: the namespace other is not watched: add it to customResources.namespaces"},
		{"not-enabled", "customResources.enabled=false", "customResources.tenants needs customResources.enabled"},
		{"section-of-the-configuration", "config.kubernetes.folder=/x",
			"config.kubernetes is set by the chart: use customResources.namespaces"},
		{"no-account", "serviceAccount.create=false",
			"customResources.enabled needs a service account of the release"},
		{"name-of-a-namespace", "customResources.namespaces.Team.hosts={a}", "additional properties 'Team' not allowed"},
		{"unknown-key", "customResources.namespaces.team-a.bucket=a", "additional properties 'bucket' not allowed"},
		{"subject", "customResources.editors.team-a[0].kind=Team", "customResources/editors/team-a/0/kind"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			wantRefused(t, customResources, tt.set, tt.want)
		})
	}
}
