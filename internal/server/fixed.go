package server

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/babelftp/babelftp/internal/config"
)

// KeepFixed returns next with the old values of all settings that cannot change while the server runs, because they
// belong to open listeners or files, or to memory in use. keys names the settings that differ, and the files whose
// contents differ. It returns an error if next is invalid with the old values.
func KeepFixed(old, next *config.Config) (cfg *config.Config, keys []string, err error) {
	c := *next
	acme := old.TLS.ACME
	if acme.IsSet() && c.TLS.ACME.IsSet() {
		acme.Hosts = c.TLS.ACME.Hosts
	}
	admin := old.Admin
	if admin.Listen == c.Admin.Listen {
		admin = c.Admin
	}
	for _, v := range []struct {
		key       string
		value, of any // pointers to the next and the current value
	}{
		{"listen", &c.Listen, &old.Listen},
		{"metrics_listen", &c.MetricsListen, &old.MetricsListen},
		{"admin_socket", &c.AdminSocket, &old.AdminSocket},
		{"admin", &c.Admin, &admin},
		{"tls.implicit_listen", &c.TLS.ImplicitListen, &old.TLS.ImplicitListen},
		{"tls.acme", &c.TLS.ACME, &acme},
		{"proxy_protocol", &c.ProxyProtocol, &old.ProxyProtocol},
		{"cluster", &c.Cluster, &old.Cluster},
		{"state", &c.State, &old.State},
		{"kubernetes.folder", &c.Kubernetes.Folder, &old.Kubernetes.Folder},
		{"passive.ports", &c.Passive.Ports, &old.Passive.Ports},
		{"memory", &c.Memory, &old.Memory},
		{"abandoned_uploads", &c.AbandonedUploads, &old.AbandonedUploads},
		{"log.format", &c.Log.Format, &old.Log.Format},
		{"audit", &c.Audit, &old.Audit},
	} {
		value, of := reflect.ValueOf(v.value).Elem(), reflect.ValueOf(v.of).Elem()
		if !reflect.DeepEqual(value.Interface(), of.Interface()) {
			value.Set(of)
			keys = append(keys, v.key)
		}
	}
	if len(keys) > 0 {
		if err := c.Validate(); err != nil {
			return nil, nil, &keptError{keys, err}
		}
	}
	for _, file := range c.KeepFiles(old) {
		if !slices.ContainsFunc(keys, func(section string) bool { return strings.HasPrefix(file, section) }) {
			keys = append(keys, file)
		}
	}
	return &c, keys, nil
}

// A keptError reports that a configuration is only valid without the values in use. The problems have no position in a
// file, so it wraps nothing.
type keptError struct {
	keys    []string
	problem error
}

func (e *keptError) Error() string {
	return fmt.Sprintf(
		"conflicts with the values in use of %s, which need a restart: %v", strings.Join(e.keys, ", "), e.problem)
}
