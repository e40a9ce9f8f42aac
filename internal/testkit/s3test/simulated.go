package s3test

import (
	"context"
	"crypto/rand"
	"fmt"
	"net"
	"net/http"
	"strings"

	"github.com/babelftp/babelftp/driver"
	"github.com/babelftp/babelftp/internal/testkit/s3sim"
)

// simulated is the prefix of the names of simulators. The name of the profile follows.
const simulated = "sim-"

// simulators returns the servers of package s3sim, which enforce the rules of AWS, the rules of R2, or all known
// rules.
func simulators() []descriptor {
	var all []descriptor
	for _, profile := range []string{"aws", "r2", "strict"} {
		all = append(all, descriptor{name: simulated + profile, start: startSimulator})
	}
	return all
}

// smallestPart is the minimum part size of simulators. It is larger than one block of the driver's memory.
const smallestPart = 256 << 10

func startSimulator(ctx context.Context, d descriptor, _ workspace) (*Server, func() error, error) {
	profile, known := driver.ProfileNamed(strings.TrimPrefix(d.name, simulated))
	if !known {
		return nil, nil, fmt.Errorf("unknown profile %q", strings.TrimPrefix(d.name, simulated))
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, nil, err
	}
	sim := s3sim.New(s3sim.Options{
		Profile: profile, RefuseUnsupported: profile.Name == "strict", MinPartSize: smallestPart,
	})
	web := &http.Server{Handler: sim}
	go func() { _ = web.Serve(listener) }()
	return &Server{
		Name:            d.name,
		Endpoint:        "http://" + listener.Addr().String(),
		Region:          s3sim.Region,
		AccessKeyID:     rand.Text(),
		SecretAccessKey: rand.Text(),
		HTTPClient:      &http.Client{Transport: &http.Transport{DisableCompression: true, MaxIdleConnsPerHost: 64}},
		SmallestPart:    smallestPart,
		forget:          sim.Forget,
	}, web.Close, nil
}
