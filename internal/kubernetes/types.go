package kubernetes

import (
	"encoding/json"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/babelftp/babelftp/internal/config"
)

// The names of the custom resources in the API.
const (
	Group   = "babelftp.io"
	Version = "v1alpha1"
	Tenants = "ftptenants"
	Users   = "ftpusers"
)

// An Object is an FTPTenant or FTPUser as the API server returns it. Its spec and status are decoded later, so that an
// invalid object, for example of another version of the schema, does not prevent reading the valid ones.
type Object struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`

	Spec   json.RawMessage `json:"spec,omitempty"`
	Status json.RawMessage `json:"status,omitempty"`
}

// DeepCopyObject implements [runtime.Object].
func (o *Object) DeepCopyObject() runtime.Object {
	out := &Object{}
	o.copyInto(out)
	return out
}

// copyInto copies o into another object.
func (o *Object) copyInto(out *Object) {
	out.TypeMeta = o.TypeMeta
	o.DeepCopyInto(&out.ObjectMeta)
	out.Spec, out.Status = append(json.RawMessage(nil), o.Spec...), append(json.RawMessage(nil), o.Status...)
}

// An ObjectList is a list of FTPTenants or FTPUsers.
type ObjectList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata"`

	Items []Object `json:"items"`
}

// DeepCopyObject implements [runtime.Object].
func (l *ObjectList) DeepCopyObject() runtime.Object {
	out := &ObjectList{TypeMeta: l.TypeMeta, Items: make([]Object, len(l.Items))}
	l.DeepCopyInto(&out.ListMeta)
	for i := range l.Items {
		l.Items[i].copyInto(&out.Items[i])
	}
	return out
}

// groupVersion returns the group and version of the custom resources.
func groupVersion() schema.GroupVersion { return schema.GroupVersion{Group: Group, Version: Version} }

// newScheme returns a scheme of the custom resources.
func newScheme() *runtime.Scheme {
	s := runtime.NewScheme()
	for _, kind := range []config.ResourceKind{config.TenantResource, config.UserResource} {
		s.AddKnownTypeWithName(groupVersion().WithKind(string(kind)), &Object{})
		s.AddKnownTypeWithName(groupVersion().WithKind(string(kind)+"List"), &ObjectList{})
	}
	metav1.AddToGroupVersion(s, groupVersion())
	return s
}

// A Status is the status of an FTPTenant or FTPUser.
type Status struct {
	// Name is the global name of the tenant, or the login of the user.
	Name               string             `json:"name,omitempty"`
	ObservedGeneration int64              `json:"observedGeneration,omitempty"`
	Conditions         []metav1.Condition `json:"conditions,omitempty"`
	Accepted           *AcceptedSpec      `json:"accepted,omitempty"`
	Sessions           *int64             `json:"sessions,omitempty"`

	// Users is the number of users of an FTPTenant.
	Users *int64 `json:"users,omitempty"`

	// Enabled and LastLogin are only in the status of an FTPUser.
	Enabled   *bool        `json:"enabled,omitempty"`
	LastLogin *metav1.Time `json:"lastLogin,omitempty"`
}

// An AcceptedSpec is the version of the spec in use.
type AcceptedSpec struct {
	Generation int64           `json:"generation"`
	Spec       json.RawMessage `json:"spec"`
}
