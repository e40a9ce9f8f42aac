package s3test

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
)

const (
	// cephPorts is the number of ports Ceph needs: two for the monitor, one for the gateway, and cephOtherPorts for
	// the OSD and the manager to choose from.
	cephPorts      = 40
	cephOtherPorts = cephPorts - 3

	// cephMemory is the storage of the OSD in bytes. The gateway frees deleted data later, so this must hold
	// everything that a test run stores.
	cephMemory = 6 << 30

	cephGateway = "client.rgw"
)

// startCeph starts Ceph's Object Gateway with a monitor, a manager and one OSD, which keeps its objects in memory.
func startCeph(ctx context.Context, d descriptor, p workspace) (*Server, func() error, error) {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	all, port := newDaemons(p.data, cephPorts)
	s := &Server{
		Name: d.name, Endpoint: "http://" + at(port+2), Region: region, AccessKeyID: rand.Text(),
		SecretAccessKey: rand.Text(),
		HTTPClient:      &http.Client{Transport: &http.Transport{DisableCompression: true, MaxIdleConnsPerHost: 64}},
	}
	if err := all.startCeph(ctx, s, port); err != nil {
		return nil, nil, all.fail(err)
	}
	s, stop, err := all.serve(ctx, s)
	if err != nil {
		return nil, nil, all.fail(err)
	}
	var mu sync.Mutex
	s.restrict = func(ctx context.Context, policy string) (login, error) {
		mu.Lock()
		defer mu.Unlock()
		return all.restrictCeph(ctx, s, policy)
	}
	return s, stop, nil
}

// restrictCeph creates a Ceph user with the permissions of a policy. It attaches the policy as "aws iam
// put-user-policy" does: https://docs.ceph.com/en/latest/radosgw/iam/
func (d *daemons) restrictCeph(ctx context.Context, s *Server, policy string) (login, error) {
	name, user := strings.ToLower(rand.Text()), login{rand.Text(), rand.Text()}
	err := d.run(ctx, "radosgw-admin", "-n", cephGateway, "user", "create", "--uid", name, "--display-name", name,
		"--access-key", user.accessKeyID, "--secret-key", user.secretAccessKey)
	if err != nil {
		return login{}, err
	}
	form := url.Values{"Action": {"PutUserPolicy"}, "UserName": {name}, "PolicyName": {"policy"},
		"PolicyDocument": {policy}}.Encode()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, s.Endpoint, strings.NewReader(form))
	if err != nil {
		return login{}, err
	}
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	sum := sha256.Sum256([]byte(form))
	admin := aws.Credentials{AccessKeyID: s.AccessKeyID, SecretAccessKey: s.SecretAccessKey}
	err = v4.NewSigner().SignHTTP(ctx, admin, request, hex.EncodeToString(sum[:]), "iam", s.Region, time.Now())
	if err != nil {
		return login{}, err
	}
	response, err := s.HTTPClient.Do(request)
	if err != nil {
		return login{}, err
	}
	defer response.Body.Close()
	if said, err := io.ReadAll(response.Body); response.StatusCode != http.StatusOK {
		return login{}, errors.Join(fmt.Errorf("PutUserPolicy: %s: %s", response.Status, said), err)
	}
	return user, nil
}

func (d *daemons) startCeph(ctx context.Context, s *Server, port int) error {
	for _, dir := range []string{"mon", "mgr", "osd", "rgw", "crash"} {
		if err := os.Mkdir(filepath.Join(d.dir, dir), 0o700); err != nil {
			return err
		}
	}
	const fsid = "8f5d1d2e-6f0b-4a3c-9b1e-3a5c7d9e1f20" // arbitrary cluster ID
	monitor := fmt.Sprintf("[v2:%s,v1:%s]", at(port), at(port+1))
	err := d.write("ceph.conf",
		"[global]",
		"fsid = "+fsid,
		"mon_initial_members = a",
		"mon_host = "+monitor,
		"public_addr = "+loopback,
		"cluster_addr = "+loopback,
		"ms_bind_port_min = "+strconv.Itoa(port+3),
		"ms_bind_port_max = "+strconv.Itoa(port+3+cephOtherPorts-1),
		"keyring = "+filepath.Join(d.dir, "keyring"),
		"osd_pool_default_size = 1",
		"osd_pool_default_min_size = 1",
		"osd_pool_default_pg_num = 4",
		"osd_pool_default_pgp_num = 4",
		"osd_pool_default_pg_autoscale_mode = off",
		"mon_allow_pool_size_one = true",
		"mon_max_pg_per_osd = 1000",
		"osd_crush_chooseleaf_type = 0",
		"run_dir = "+d.dir,
		"admin_socket =", // its path could exceed the limit for sockets
		"log_file =",
		"mon_cluster_log_file =",
		"crash_dir = "+filepath.Join(d.dir, "crash"),
		"mon_data_avail_crit = 0", // run on a nearly full disk, too
		"mon_data = "+filepath.Join(d.dir, "mon"),
		"mgr_data = "+filepath.Join(d.dir, "mgr"),
		"osd_data = "+filepath.Join(d.dir, "osd"),
		"osd_objectstore = memstore",
		"memstore_device_bytes = "+strconv.Itoa(cephMemory),
		"["+cephGateway+"]",
		"rgw_frontends = beast endpoint="+at(port+2),
		"rgw_data = "+filepath.Join(d.dir, "rgw"),
	)
	if err != nil {
		return err
	}
	d.env = append(d.env, "CEPH_CONF="+filepath.Join(d.dir, "ceph.conf"))
	const all = "allow *"
	for _, step := range []func() error{
		func() error { return d.keys(ctx, "mon.", "--cap", "mon", all) },
		func() error {
			return d.keys(ctx, "client.admin", "--cap", "mon", all, "--cap", "osd", all, "--cap", "mgr", all)
		},
		func() error {
			return d.keys(ctx, cephGateway, "--cap", "mon", all, "--cap", "osd", all, "--cap", "mgr", all)
		},
		func() error { return d.keys(ctx, "mgr.a", "--cap", "mon", "allow profile mgr", "--cap", "osd", all) },
		func() error {
			return d.keys(ctx, "osd.0", "--cap", "mon", "allow profile osd", "--cap", "mgr", "allow profile osd")
		},
		func() error {
			return d.run(ctx, "monmaptool", "--create", "--addv", "a", monitor, "--fsid", fsid, "monmap")
		},
		func() error {
			return d.run(ctx, "ceph-mon", "--mkfs", "-i", "a", "--monmap", "monmap", "--keyring", "keyring")
		},
		func() error { return d.start("ceph-mon", "-f", "-i", "a") },
		func() error { return d.start("ceph-mgr", "-f", "-i", "a") },
		func() error { return d.run(ctx, "ceph", "osd", "new", fsid, "0") },
		func() error { return d.run(ctx, "ceph-osd", "-i", "0", "--mkfs", "--osd-uuid", fsid) },
		func() error { return d.start("ceph-osd", "-f", "-i", "0") },
		func() error {
			return d.run(
				ctx, "radosgw-admin", "-n", cephGateway, "user", "create", "--uid", "test", "--display-name", "test",
				"--access-key", s.AccessKeyID, "--secret-key", s.SecretAccessKey, "--caps", "user-policy=*")
		},
		func() error { return d.start("radosgw", "-f", "-n", cephGateway) },
	} {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// keys adds the key of a daemon and its capabilities to the shared keyring.
func (d *daemons) keys(ctx context.Context, name string, capabilities ...string) error {
	args := []string{"keyring", "--gen-key", "-n", name}
	if name == "mon." {
		args = append([]string{"--create-keyring"}, args...)
	}
	return d.run(ctx, "ceph-authtool", append(args, capabilities...)...)
}
