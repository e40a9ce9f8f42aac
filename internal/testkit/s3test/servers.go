package s3test

import (
	"context"
	"encoding/base64"
	"errors"
	"os"
	"slices"

	"github.com/babelftp/babelftp/internal/testkit/s3sim"
)

// region is the region of every server. Clients include it in their signatures.
const region = s3sim.Region

// KMSKey is the name of the only key of servers that support encryption.
const KMSKey = "test-key"

// A descriptor describes a kind of server.
type descriptor struct {
	name string

	// start starts the server in a workspace and returns a function that stops it.
	start func(ctx context.Context, d descriptor, p workspace) (*Server, func() error, error)

	// folders means that buckets are directories in the data directory.
	folders bool

	// tls means that clients reach the server over HTTPS. Run does not use such servers.
	tls bool

	// ready, if not nil, returns nil once the parts of the server that start after it lists buckets are ready too.
	ready func(context.Context, *Server) error

	// command returns the arguments and the environment with which a process serves address from the data
	// directory. Credentials are passed in the environment, where other users cannot see them.
	command func(data, address string, c login) (args, env []string)
}

// A workspace holds the paths and settings of one server.
type workspace struct {
	binary, data string
	address      string // address to listen on; a free one if empty
	login        login  // random if empty
}

// login holds the credentials of an account.
type login struct{ accessKeyID, secretAccessKey string }

// descriptors returns the real servers, the simulators, MinIO over HTTPS (S3 accepts customer-provided encryption
// keys over HTTPS only), and the servers from Debian packages.
func descriptors() []descriptor {
	all := processes()
	withTLS := all[0]
	withTLS.name, withTLS.tls = "minio-tls", true
	return slices.Concat(all, simulators(), []descriptor{withTLS, versioned()}, packaged())
}

// versioned returns versitygw with a versioning directory. Its buckets are in a subdirectory, so Server.Folder is
// not set.
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

// withVersions is the suffix of the name of a server with a versioning directory.
const withVersions = "-versions"

// packaged returns the servers from Debian packages. They start slowly and need much memory, so [Run] leaves them
// out.
func packaged() []descriptor {
	return []descriptor{
		{name: "ceph", start: startCeph},
		{name: "swift", start: startSwift},
	}
}

// processes returns the servers whose programs make tools builds.
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
						"MINIO_BROWSER=off", // it would use a second port
						"MINIO_UPDATE=off",  // it would use the network
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
