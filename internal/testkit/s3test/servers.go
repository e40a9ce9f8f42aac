package s3test

import (
	"context"
	"encoding/base64"
	"errors"
	"os"
	"slices"

	"github.com/babelftp/babelftp/internal/testkit/s3sim"
)

// region is the region of every server, which their clients sign for.
const region = s3sim.Region

// KMSKey is the name of the only key that a server encrypts with, where it encrypts.
const KMSKey = "test-key"

// descriptor describes a kind of server.
type descriptor struct {
	name string

	// start starts it at a place and returns how to stop it.
	start func(ctx context.Context, d descriptor, p workspace) (*Server, func() error, error)

	// folders says that the buckets are folders in the data folder.
	folders bool

	// tls says that clients reach the server over https. Run does not use it.
	tls bool

	// ready, if not nil, returns nil when the parts of the server that start after the listing of buckets respond too.
	ready func(context.Context, *Server) error

	// command is the arguments and the environment that make the binary serve address from the data folder with the
	// given credentials; for processes only. Credentials are passed in the environment, where other users do not see
	// them.
	command func(data, address string, c login) (args, env []string)
}

// workspace is where a server of this process finds its binary (if it has one) and keeps its data.
type workspace struct {
	binary, data string
	address      string // to serve; a free one when empty
	login        login  // a new one when empty
}

// login is the credentials of a server's account.
type login struct{ accessKeyID, secretAccessKey string }

// descriptors lists the real servers, then the simulators, then MinIO over https, then the servers of packages. S3
// accepts keys of its customers over https only.
func descriptors() []descriptor {
	all := processes()
	withTLS := all[0]
	withTLS.name, withTLS.tls = "minio-tls", true
	return slices.Concat(all, simulators(), []descriptor{withTLS, versioned()}, packaged())
}

// versioned is versitygw with a place for versions. It has buckets in another folder, which no test looks into.
func versioned() descriptor {
	d := processes()[1]
	const buckets, versions = "/buckets", "/versions"
	command := d.command
	d.name, d.folders = d.name+withVersions, false
	d.start = func(ctx context.Context, d descriptor, p workspace) (*Server, func() error, error) {
		if err := errors.Join(os.Mkdir(p.data+buckets, 0o700), os.Mkdir(p.data+versions, 0o700)); err != nil {
			return nil, nil, err
		}
		return startProcess(ctx, d, p)
	}
	d.command = func(data, address string, c login) (args, env []string) {
		_, env = command(data, address, c)
		return []string{"posix", "--versioning-dir", data + versions, data + buckets}, env
	}
	return d
}

// withVersions ends the name of a server that has a place for versions.
const withVersions = "-versions"

// packaged are the servers that Debian's packages bring. They take longer than the others to start, and much memory,
// so [Run] leaves them out.
func packaged() []descriptor {
	return []descriptor{
		{name: "ceph", start: startCeph},
		{name: "swift", start: startSwift},
	}
}

// processes are the servers whose programs make tools builds.
func processes() []descriptor {
	return []descriptor{
		{
			name:  "minio",
			start: startProcess,
			ready: stsReady,
			command: func(data, address string, c login) (args, env []string) {
				return []string{"server", "--quiet", "--address", address, "--certs-dir", data + "/.certs",
						data + "/drive"}, []string{
						"MINIO_ROOT_USER=" + c.accessKeyID,
						"MINIO_ROOT_PASSWORD=" + c.secretAccessKey,
						"MINIO_REGION=" + region,
						"MINIO_BROWSER=off", // it would take a second port
						"MINIO_UPDATE=off",  // it would ask the network
						"MINIO_KMS_SECRET_KEY=" + KMSKey + ":" + base64.StdEncoding.EncodeToString(make([]byte, 32)),
					}
			},
		},
		{
			name:    "versitygw",
			start:   startProcess,
			folders: true,
			command: func(data, address string, c login) (args, env []string) {
				return []string{"posix", data}, []string{
					"ROOT_ACCESS_KEY_ID=" + c.accessKeyID,
					"ROOT_SECRET_ACCESS_KEY=" + c.secretAccessKey,
					"VGW_PORT=" + address,
					"VGW_REGION=" + region,
					"VGW_KEEP_ALIVE=true",
					"VGW_QUIET=true",
				}
			},
		},
	}
}
