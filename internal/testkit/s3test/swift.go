package s3test

import (
	"context"
	"crypto/rand"
	"fmt"
	"net/http"
	"os"
	"os/user"
	"path/filepath"
	"strings"
)

// swiftPorts is the number of ports for three storage servers, memcached and the proxy.
const swiftPorts = 5

// swiftPatience is how long Swift's servers wait for one another, in seconds. There are no replicas to try instead.
const swiftPatience = "60"

// startSwift starts OpenStack Swift with its S3 API: the proxy, and the account, container and object servers, each
// with one replica in one directory. All servers read their hash prefix from the package's file
// /etc/swift/swift.conf.
func startSwift(ctx context.Context, d descriptor, p workspace) (*Server, func() error, error) {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	all, port := newDaemons(p.data, swiftPorts)
	// The access key is Swift's account and user.
	s := &Server{
		Name: d.name, Endpoint: "http://" + at(port), Region: region, AccessKeyID: "test:tester",
		SecretAccessKey: rand.Text(),
		HTTPClient:      &http.Client{Transport: &http.Transport{DisableCompression: true, MaxIdleConnsPerHost: 64}},
	}
	if err := all.startSwift(ctx, s, port); err != nil {
		return nil, nil, all.fail(err)
	}
	s, stop, err := all.serve(ctx, s)
	if err != nil {
		return nil, nil, all.fail(err)
	}
	return s, stop, nil
}

func (d *daemons) startSwift(ctx context.Context, s *Server, port int) error {
	for _, dir := range []string{"devices/d1", "cache"} {
		if err := os.MkdirAll(filepath.Join(d.dir, dir), 0o700); err != nil {
			return err
		}
	}
	me, err := user.Current()
	if err != nil {
		return err
	}
	common := []string{
		"[DEFAULT]",
		"bind_ip = " + loopback,
		"user = " + me.Username,
		"swift_dir = " + d.dir,
		"workers = 0", // child processes would outlive their parent
		"devices = " + filepath.Join(d.dir, "devices"),
		"mount_check = false",
		"disable_fallocate = true",
		// A late server is only busy. A proxy that gives up would report a stored object as broken, and an object
		// whose container was not updated in time would never be listed.
		"conn_timeout = " + swiftPatience,
		"node_timeout = " + swiftPatience,
		"recoverable_node_timeout = " + swiftPatience,
		"container_update_timeout = " + swiftPatience,
		"error_suppression_limit = 1000",
	}
	for i, kind := range []string{"account", "container", "object"} {
		own := port + 1 + i
		builder, device := kind+".builder", fmt.Sprintf("r1z1-%s/d1", at(own))
		for _, args := range [][]string{{"create", "4", "1", "1"}, {"add", device, "1"}, {"rebalance"}} {
			if err := d.run(ctx, "swift-ring-builder", append([]string{builder}, args...)...); err != nil {
				return err
			}
		}
		config := append(common[:len(common):len(common)],
			fmt.Sprintf("bind_port = %d", own),
			"[pipeline:main]",
			"pipeline = "+kind+"-server",
			"[app:"+kind+"-server]",
			"use = egg:swift#"+kind,
			"recon_cache_path = "+filepath.Join(d.dir, "cache"),
		)
		if err := d.write(kind+".conf", config...); err != nil {
			return err
		}
		if err := d.start("swift-"+kind+"-server", kind+".conf", "--verbose"); err != nil {
			return err
		}
	}
	memcached := port + 4
	if err := d.start(
		"memcached", "-u", me.Username, "-l", loopback, "-p", fmt.Sprint(memcached), "-U", "0"); err != nil {
		return err
	}
	for p := port + 1; p < port+swiftPorts; p++ { // the proxy skips unreachable servers for a minute
		if err := d.await(ctx, p); err != nil {
			return err
		}
	}
	account, name, _ := strings.Cut(s.AccessKeyID, ":")
	config := append(common[:len(common):len(common)],
		fmt.Sprintf("bind_port = %d", port),
		"[pipeline:main]",
		"pipeline = catch_errors gatekeeper cache listing_formats bulk s3api tempauth copy slo versioned_writes "+
			"symlink proxy-server",
		"[app:proxy-server]",
		"use = egg:swift#proxy",
		"account_autocreate = true",
		"[filter:tempauth]",
		"use = egg:swift#tempauth",
		fmt.Sprintf("user_%s_%s = %s .admin", account, name, s.SecretAccessKey),
		"[filter:s3api]",
		"use = egg:swift#s3api",
		"location = "+s.Region,
		"[filter:cache]",
		"use = egg:swift#memcache",
		"memcache_servers = "+at(memcached),
		"[filter:versioned_writes]",
		"use = egg:swift#versioned_writes",
		"allow_object_versioning = true",
	)
	for _, filter := range []string{"catch_errors", "gatekeeper", "listing_formats", "bulk", "copy", "slo", "symlink"} {
		config = append(config, "[filter:"+filter+"]", "use = egg:swift#"+filter)
	}
	if err := d.write("proxy.conf", config...); err != nil {
		return err
	}
	return d.start("swift-proxy-server", "proxy.conf", "--verbose")
}
