// Command jlaffaye performs a verb with github.com/jlaffaye/ftp. TestClients documents the verbs and the
// environment.
package main

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"log"
	"net"
	"os"
	"time"

	"github.com/jlaffaye/ftp"
)

func main() {
	log.SetFlags(0)
	c, err := connect()
	if err == nil {
		err = run(c, os.Args[1], os.Args[2:])
	}
	if err == nil {
		err = c.Quit()
	}
	if err != nil {
		log.Fatal(err)
	}
}

func connect() (*ftp.ServerConn, error) {
	options := []ftp.DialOption{ftp.DialWithTimeout(time.Minute)}
	if how := os.Getenv("FTP_TLS"); how != "plain" {
		pem, err := os.ReadFile(os.Getenv("FTP_CA"))
		if err != nil {
			return nil, err
		}
		c := &tls.Config{ServerName: os.Getenv("FTP_HOST"), RootCAs: x509.NewCertPool()}
		c.RootCAs.AppendCertsFromPEM(pem)
		c.ClientSessionCache = tls.NewLRUClientSessionCache(0)
		if version := os.Getenv("FTP_TLS_VERSION"); version != "" {
			c.MinVersion = map[string]uint16{"1.2": tls.VersionTLS12, "1.3": tls.VersionTLS13}[version]
			c.MaxVersion = c.MinVersion
		}
		if how == "explicit" {
			options = append(options, ftp.DialWithExplicitTLS(c))
		} else {
			options = append(options, ftp.DialWithTLS(c))
		}
	}
	c, err := ftp.Dial(net.JoinHostPort(os.Getenv("FTP_HOST"), os.Getenv("FTP_PORT")), options...)
	if err != nil {
		return nil, err
	}
	return c, c.Login(os.Getenv("FTP_USER"), os.Getenv("FTP_PASSWORD"))
}

func run(c *ftp.ServerConn, verb string, names []string) error {
	switch verb {
	case "list":
		entries, err := c.List(names[0])
		for _, e := range entries {
			fmt.Println(e.Name)
		}
		return err
	case "upload", "abort":
		return pairs(names, func(local, remote string) error { return upload(c, local, remote, 0) })
	case "download":
		return pairs(names, func(remote, local string) error { return download(c, remote, local) })
	case "resume-upload":
		size, err := c.FileSize(names[1])
		if err != nil {
			return err
		}
		return upload(c, names[0], names[1], uint64(size))
	case "resume-download":
		return download(c, names[0], names[1])
	case "put-time":
		if err := upload(c, names[0], names[1], 0); err != nil {
			return err
		}
		info, err := os.Stat(names[0])
		if err != nil {
			return err
		}
		return c.SetTime(names[1], info.ModTime())
	case "get-time":
		if err := download(c, names[0], names[1]); err != nil {
			return err
		}
		t, err := c.GetTime(names[0])
		if err != nil {
			return err
		}
		return os.Chtimes(names[1], t, t)
	case "rename":
		return c.Rename(names[0], names[1])
	case "delete":
		return each(names, c.Delete)
	case "mkdir":
		return each(names, c.MakeDir)
	case "rmdir":
		return each(names, c.RemoveDir)
	}
	return fmt.Errorf("no verb is called %q", verb)
}

func pairs(names []string, do func(a, b string) error) error {
	for i := 0; i < len(names); i += 2 {
		if err := do(names[i], names[i+1]); err != nil {
			return fmt.Errorf("%s: %w", names[i], err)
		}
	}
	return nil
}

func each(names []string, do func(name string) error) error {
	for _, name := range names {
		if err := do(name); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

func upload(c *ftp.ServerConn, local, remote string, offset uint64) error {
	f, err := os.Open(local)
	if err != nil {
		return err
	}
	defer f.Close()
	if _, err := f.Seek(int64(offset), io.SeekStart); err != nil {
		return err
	}
	return c.StorFrom(remote, f, offset)
}

// download continues where the local file ends.
func download(c *ftp.ServerConn, remote, local string) error {
	f, err := os.OpenFile(local, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	size, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return err
	}
	r, err := c.RetrFrom(remote, uint64(size))
	if err != nil {
		return err
	}
	if _, err := io.Copy(f, r); err != nil {
		return err
	}
	return r.Close()
}
