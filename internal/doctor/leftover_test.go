package doctor_test

import (
	"bufio"
	"context"
	"io"
	"net"
	"strings"
	"testing"

	"github.com/babelftp/babelftp/internal/doctor"
)

// Where the examination is stopped while it waits for the reply to MKD, it removes the directory that may be there.
func TestStoppedAtMKD(t *testing.T) {
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	ctx, stop := context.WithCancel(t.Context())
	commands := make(chan string, 100)
	serve := func(conn net.Conn) {
		defer conn.Close()
		_, _ = io.WriteString(conn, "220 hello\r\n")
		for in := bufio.NewScanner(conn); in.Scan(); {
			verb, _, _ := strings.Cut(in.Text(), " ")
			if verb == "MKD" {
				commands <- in.Text()
				stop()
				continue
			}
			if verb == "RMD" {
				commands <- in.Text()
			}
			replies := map[string]string{"USER": "331 ", "PASS": "230 ", "AUTH": "502 "}
			reply, ok := replies[verb]
			if !ok {
				reply = "250 "
			}
			_, _ = io.WriteString(conn, reply+"\r\n")
		}
	}
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go serve(conn)
		}
	}()
	target, err := doctor.ParseTarget("ftp://" + l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	_, err = doctor.Examine(ctx, target, doctor.Options{Samples: 2, Logins: 1, Progress: func(string) {}})
	if err == nil {
		t.Error("it has not noticed the end")
	}
	made := strings.TrimPrefix(<-commands, "MKD ")
	select {
	case removed := <-commands:
		if removed != "RMD "+made {
			t.Errorf("made %s, and sent %s", made, removed)
		}
	default:
		t.Errorf("%s is left", made)
	}
}
