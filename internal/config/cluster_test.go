package config

import (
	"slices"
	"strings"
	"testing"
)

// The number of a replica is configured, or is at the end of its host name.
func TestNumber(t *testing.T) {
	two := 2
	for name, tc := range map[string]struct {
		cluster Cluster
		host    string
		want    int
		problem string
	}{
		"host":       {Cluster{Replicas: 3}, "babelftp-1", 1, ""},
		"full-name":  {Cluster{Replicas: 3}, "babelftp-2.babelftp-headless.ftp.svc.cluster.local", 2, ""},
		"given":      {Cluster{Replicas: 3, Replica: &two}, "babelftp-0", 2, ""},
		"no-number":  {Cluster{Replicas: 3}, "ftp-server", 0, "does not end with a number"},
		"no-dash":    {Cluster{Replicas: 3}, "7", 0, "does not end with a number"},
		"no-name":    {Cluster{Replicas: 3}, "", 0, "does not end with a number"},
		"too-large":  {Cluster{Replicas: 3}, "babelftp-3", 0, "set cluster.replicas to a higher number"},
		"deployment": {Cluster{Replicas: 3}, "babelftp-6d4cf56db6-x7k2p", 0, "does not end with a number"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := tc.cluster.Number(tc.host)
			if got != tc.want || (err != nil) != (tc.problem != "") || err != nil &&
				!strings.Contains(err.Error(), tc.problem) {
				t.Errorf("got %d, %v, want %d, %s", got, err, tc.want, tc.problem)
			}
		})
	}
}

func TestHosts(t *testing.T) {
	list := []string{"10.0.0.1", "10.0.0.2"}
	if got := (Cluster{Replicas: 2, Peers: list}).Hosts(); !slices.Equal(got, list) {
		t.Errorf("got %v, want %v", got, list)
	}
	if got := (Cluster{Replicas: 2, Peers: []string{"ftp-{replica}.ftp"}}).Hosts(); !slices.Equal(
		got, []string{"ftp-0.ftp", "ftp-1.ftp"}) {
		t.Errorf("got %v", got)
	}
}
