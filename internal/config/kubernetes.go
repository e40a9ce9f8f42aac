package config

// Kubernetes is the kubernetes section: the border of custom resources.
type Kubernetes struct {
	Folder     string
	Namespaces map[string]*Namespace
}

// A Namespace says what the resources of a namespace may use.
type Namespace struct {
	Buckets   []string
	Addresses []string
	Hosts     []string
	ARNs      []string
}
