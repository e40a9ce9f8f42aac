package s3test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/babelftp/babelftp/internal/testkit/ftptest"
)

// loopback is the only address that servers listen on.
const loopback = "127.0.0.1"

// daemons are processes that together form one S3 server. They come from Debian packages.
type daemons struct {
	dir     string // for data and one log per process
	env     []string
	running []*process
	logs    []string
	release func() // releases the reserved ports
}

// newDaemons reserves consecutive ports and returns an empty set of daemons.
func newDaemons(dir string, ports int) (d *daemons, first int) {
	port, release := ftptest.ReservePorts(ports, loopback)
	return &daemons{dir: dir, env: []string{"HOME=" + dir, "PATH=" + os.Getenv("PATH") + ":/usr/sbin:/sbin"},
		release: release}, int(port)
}

// launch starts a program and writes its output to a log. The program's package may not be installed.
func (d *daemons) launch(name string, args ...string) (*process, error) {
	program, err := exec.LookPath(name)
	if err != nil {
		return nil, fmt.Errorf("%w; run: make s3-packages", err)
	}
	log := filepath.Join(d.dir, fmt.Sprintf("%02d-%s.log", len(d.logs), name))
	output, err := os.Create(log)
	if err != nil {
		return nil, err
	}
	defer output.Close()
	d.logs = append(d.logs, log)
	cmd := exec.Command(program, args...)
	cmd.Dir, cmd.Env, cmd.SysProcAttr = d.dir, d.env, dieWithParent()
	cmd.Stdout, cmd.Stderr = output, output
	return run(cmd)
}

// start starts a daemon that stays in the foreground.
func (d *daemons) start(name string, args ...string) error {
	p, err := d.launch(name, args...)
	if err != nil {
		return err
	}
	d.running = append(d.running, p)
	return nil
}

// await waits until a daemon listens on a port.
func (d *daemons) await(ctx context.Context, port int) error {
	ticker := time.NewTicker(pollInterval)
	defer ticker.Stop()
	for {
		conn, err := new(net.Dialer).DialContext(ctx, "tcp", at(port))
		if err == nil {
			return conn.Close()
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("nothing listens on %s: %w", at(port), err)
		case <-ticker.C:
		}
	}
}

// run runs a command and waits for it to exit.
func (d *daemons) run(ctx context.Context, name string, args ...string) error {
	p, err := d.launch(name, args...)
	if err != nil {
		return err
	}
	select {
	case <-p.done:
		err = p.err
	case <-ctx.Done():
		err = errors.Join(ctx.Err(), p.kill())
	}
	if err != nil {
		return fmt.Errorf("%s %s: %w", name, strings.Join(args, " "), err)
	}
	return nil
}

// write creates a file with the given lines in the data directory.
func (d *daemons) write(name string, lines ...string) error {
	return os.WriteFile(filepath.Join(d.dir, name), []byte(strings.Join(lines, "\n")+"\n"), 0o600)
}

// serve waits until the last daemon, which serves S3, is ready. It returns a function that stops all daemons.
func (d *daemons) serve(ctx context.Context, s *Server) (*Server, func() error, error) {
	if err := d.running[len(d.running)-1].waitReady(ctx, s, nil); err != nil {
		return nil, nil, err
	}
	return s, func() error {
		s.HTTPClient.CloseIdleConnections()
		return d.stop()
	}, nil
}

// stop kills all daemons. They need no clean shutdown because their data is removed.
func (d *daemons) stop() error {
	var errs []error
	for _, p := range slices.Backward(d.running) {
		errs = append(errs, p.kill())
	}
	d.release()
	return errors.Join(errs...)
}

// fail stops all daemons and adds their output to an error.
func (d *daemons) fail(err error) error {
	err = errors.Join(err, d.stop())
	for _, log := range d.logs {
		if said := tail(log); len(said) > 0 {
			err = fmt.Errorf("%w\n%s:\n%s", err, filepath.Base(log), said)
		}
	}
	return err
}

// at returns a loopback address.
func at(port int) string { return net.JoinHostPort(loopback, strconv.Itoa(port)) }
