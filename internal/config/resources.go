package config

import "time"

// A ResourceKind is the kind of a custom resource.
type ResourceKind string

// The kinds of custom resources.
const (
	TenantResource ResourceKind = "FTPTenant"
	UserResource   ResourceKind = "FTPUser"
)

// A Resource is an FTPTenant or FTPUser of the Kubernetes API. It is immutable.
type Resource struct {
	Kind                 ResourceKind
	Namespace, Name, UID string
	Generation           int64
	Created              time.Time
	Spec                 []byte        // JSON
	Accepted             *AcceptedSpec // status.accepted, or nil
}

// An AcceptedSpec is a version of a resource that was valid.
type AcceptedSpec struct {
	Generation int64
	Spec       []byte
}

// References returns what resources refer to. version changes with the content.
type References interface {
	Secret(namespace, name string) (data map[string][]byte, version string, ok bool)
	ConfigMap(namespace, name string) (data map[string]string, version string, ok bool)
}

// Resources are all resources of the watched namespaces.
type Resources struct {
	Tenants, Users []*Resource
	References     References
	// Check returns a problem with a configuration that only the server can find. It is called with configurations
	// that have a single tenant, which is new or has changed. It may be nil.
	Check func(*Config) error
}

// A ResourceReason says why the current spec of a resource is in use or not.
type ResourceReason string

// The reasons.
const (
	ResourceAccepted          ResourceReason = "Accepted"          // the current spec is in use
	ResourceInvalid           ResourceReason = "Invalid"           // check would refuse it
	ResourceNotAllowed        ResourceReason = "NotAllowed"        // the namespace may not use something in it
	ResourceSecretNotFound    ResourceReason = "SecretNotFound"    // a Secret or its key does not exist
	ResourceConfigMapNotFound ResourceReason = "ConfigMapNotFound" // a ConfigMap does not exist
	ResourceNameTaken         ResourceReason = "NameTaken"         // another tenant or user has its name
	ResourceHostTaken         ResourceReason = "HostTaken"         // another tenant has one of its hosts
	ResourceBucketTaken       ResourceReason = "BucketTaken"       // another tenant has a part of its buckets
	ResourceTenantNotFound    ResourceReason = "TenantNotFound"    // the tenant of a user does not exist
	ResourceTenantNotAccepted ResourceReason = "TenantNotAccepted" // no version of the tenant of a user is in use
)

// A ResourceOutcome says what became of a resource. It is immutable; an unchanged outcome is the same pointer.
type ResourceOutcome struct {
	Resource     *Resource
	Tenant, User string         // global names; User is empty for a tenant
	Used         *AcceptedSpec  // version in use; nil if none
	Reason       ResourceReason // "Accepted" if the current spec is in use
	Message      string         // exact text of check
	Disabled     bool           // of a user
}
