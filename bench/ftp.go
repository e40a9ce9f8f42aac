package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"path"
	"strings"
	"time"

	"github.com/babelftp/babelftp/internal/testkit/ftptest"
)

// workTimeout limits the wait for a reply, and the duration of a transfer.
const workTimeout = 15 * time.Minute

// An ftpServer is an FTP server at a URL such as ftp://user:password@host:port/directory.
type ftpServer struct {
	address, user, password string
	dir                     string // base directory of all files
	content                 content
}

func parseFTP(text string, c content) (*ftpServer, error) {
	u, err := url.Parse(text)
	if err != nil {
		return nil, err
	}
	if u.Scheme != "ftp" || u.Port() == "" || u.User == nil {
		return nil, fmt.Errorf("invalid URL %q: want ftp://user:password@host:port/directory", text)
	}
	password, _ := u.User.Password()
	return &ftpServer{
		address: u.Host, user: u.User.Username(), password: password, dir: path.Join("/", u.Path), content: c,
	}, nil
}

// open connects and logs in.
func (f *ftpServer) open(ctx context.Context) (session, error) {
	s, err := f.login(ctx)
	if err != nil {
		return nil, err // must not be a non-nil interface with a nil session
	}
	if err := s.command("2", "TYPE I"); err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

func (f *ftpServer) login(ctx context.Context) (*ftpSession, error) {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", f.address)
	if err != nil {
		return nil, err
	}
	s := &ftpSession{f, ftptest.NewConn(conn)}
	s.Timeout = workTimeout
	defer context.AfterFunc(ctx, s.close)() // a server delays replies to wrong passwords
	err = s.completed()
	if err == nil {
		err = s.command("3", "USER "+f.user)
	}
	if err == nil {
		err = s.command("2", "PASS "+f.password)
	}
	if err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

// An ftpSession is a session on an [ftpServer].
type ftpSession struct {
	server *ftpServer
	*ftptest.Conn
}

// completed reads the greeting or the final reply of a transfer, and returns an error unless it is positive.
func (s *ftpSession) completed() error {
	reply, err := s.Reply()
	if err == nil && !strings.HasPrefix(reply, "2") {
		err = errors.New(reply)
	}
	return err
}

func (s *ftpSession) command(digit string, line string) error {
	reply, err := s.Send(line)
	if err == nil && !strings.HasPrefix(reply, digit) {
		err = fmt.Errorf("%s: %s", line, reply)
	}
	return err
}

// data sends a command with a passive data connection, and waits for the preliminary reply.
func (s *ftpSession) data(line string) (net.Conn, error) {
	conn, reply, err := s.Begin(line)
	if err == nil && conn == nil {
		err = fmt.Errorf("%s: %s", line, reply)
	}
	return conn, err
}

func (s *ftpSession) store(_ context.Context, name string, size int64) error {
	conn, err := s.data("STOR " + path.Join(s.server.dir, name))
	if err != nil {
		return err
	}
	err = s.server.content.send(conn, size)
	if closed := conn.Close(); err == nil {
		err = closed
	}
	return errors.Join(s.completed(), err)
}

func (s *ftpSession) fetch(_ context.Context, name string, size int64) error {
	conn, err := s.data("RETR " + path.Join(s.server.dir, name))
	if err != nil {
		return err
	}
	defer conn.Close()
	err = s.server.content.check(conn, 0, size)
	return errors.Join(s.completed(), err)
}

func (s *ftpSession) list(_ context.Context, dir string) (entries int, first time.Duration, err error) {
	begin := time.Now()
	conn, err := s.data("MLSD " + path.Join(s.server.dir, dir))
	if err != nil {
		return 0, 0, err
	}
	defer conn.Close()
	lines := bufio.NewReaderSize(conn, readSize)
	for {
		line, err := lines.ReadSlice('\n')
		if errors.Is(err, io.EOF) {
			return entries, first, s.completed()
		}
		if err != nil {
			return 0, 0, err
		}
		if first == 0 {
			first = time.Since(begin)
		}
		if facts, _, _ := bytes.Cut(line, []byte(" ")); bytes.Contains(bytes.ToLower(facts), []byte("type=file;")) {
			entries++
		}
	}
}

// quit ends the session and waits until the server has closed the connection.
func (s *ftpSession) quit() error {
	defer s.close()
	if err := s.command("2", "QUIT"); err != nil {
		return err
	}
	return s.Closed()
}

func (s *ftpSession) close() { _ = s.Close() }
