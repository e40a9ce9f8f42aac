package doctor

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/text/unicode/norm"
)

// fileSize is the size of the file that goes up and down, in bytes: more than one TCP window.
const fileSize = 256 << 10

// content is a file that shows what a transfer does to it: every byte, line ends of all systems, and the IAC of Telnet.
func content() []byte {
	part := []byte("\r\n\n\r\xff\xf4\xff\xf2")
	for i := range 256 {
		part = append(part, byte(i))
	}
	return bytes.Repeat(part, fileSize/len(part))
}

// scripts returns names in six scripts.
func scripts() []string {
	return []string{"Crème", "Ωμέγα", "Привет", "مرحبا", "नमस्ते", "漢字"}
}

// files sends a file and names, and looks whether they come back.
func (x *examination) files(ctx context.Context, s *session) {
	name, body := x.prefix+".bin", content()
	if !x.stored(ctx, s, name, body) {
		return
	}
	half := len(body) / 2
	x.fetch(ctx, s, name, body, 0)
	x.fetch(ctx, s, name, body, half)
	x.names(ctx, s)
	x.Progress("RNTO")
	to := x.prefix + "-renamed.bin"
	r, err := s.send("RNFR " + name)
	if err == nil && r.code == 350 {
		x.made = append(x.made, to)
		r, err = s.send("RNTO " + to)
	}
	if (err != nil || !r.ok()) && ctx.Err() == nil {
		x.note(commandRefused, []string{"RNTO"}, textOf(r, err))
	}
}

// stored uploads a file, and tells whether the server has it.
func (x *examination) stored(ctx context.Context, s *session, name string, body []byte) bool {
	x.Progress("STOR " + name)
	x.made = append(x.made, name)
	_, r, err := x.transfer(ctx, s, "STOR "+name, body)
	if err == nil && r.ok() || ctx.Err() != nil {
		return err == nil && r.ok()
	}
	id, args := transferCut, []string(nil)
	switch {
	case err != nil || r.code == 426 || r.code == 451:
	case r.code == 452 || r.code == 552:
		id = storageFull
	default:
		id, args = commandRefused, []string{"STOR"}
	}
	x.note(id, args, "STOR "+name, textOf(r, err))
	return false
}

// fetch downloads the file from an offset on, and compares.
func (x *examination) fetch(ctx context.Context, s *session, name string, body []byte, offset int) {
	x.Progress(fmt.Sprintf("RETR %s %d", name, offset))
	if offset > 0 {
		if r, err := s.send("REST " + strconv.Itoa(offset)); err != nil || r.code != 350 {
			x.note(featureMissing, []string{"REST"}, textOf(r, err))
			return
		}
	}
	data, r, err := x.transfer(ctx, s, "RETR "+name, nil)
	switch want := body[offset:]; {
	case ctx.Err() != nil:
	case err == nil && r.code >= 500 && offset > 0:
		x.note(featureMissing, []string{"REST"}, r.String())
	case err == nil && r.code >= 500:
		x.note(commandRefused, []string{"RETR"}, r.String())
	case err != nil || !r.ok():
		x.note(transferCut, nil, "RETR "+name, textOf(r, err))
	case !bytes.Equal(data, want):
		at := 0
		for at < min(len(data), len(want)) && data[at] == want[at] {
			at++
		}
		x.note(fileDiffers, []string{name}, fmt.Sprintf("REST %d, RETR: %d ≠ %d bytes; %x ≠ %x at %d", offset, len(data), len(want),
			data[at:min(at+8, len(data))], want[at:min(at+8, len(want))], offset+at))
	}
}

// names stores files with names in six scripts, and looks for them in the listing.
func (x *examination) names(ctx context.Context, s *session) {
	var kept []string
	for _, script := range scripts() {
		if name := x.prefix + "-" + script + ".txt"; ctx.Err() == nil {
			x.Progress("STOR " + name)
			x.made = append(x.made, name)
			if _, r, err := x.transfer(ctx, s, "STOR "+name, []byte(script)); err == nil && r.ok() {
				kept = append(kept, name)
			} else if ctx.Err() == nil {
				x.note(namesChanged, []string{name}, "STOR "+name, textOf(r, err))
			}
		}
	}
	if !strings.Contains(strings.ToUpper(s.features.text), "UTF8") {
		x.note(featureMissing, []string{"UTF8"}, "FEAT", s.features.String())
	}
	x.Progress("MLSD")
	data, r, err := x.transfer(ctx, s, "MLSD", nil)
	if err == nil && !r.ok() {
		x.note(featureMissing, []string{"MLSD"}, r.String())
		data, r, err = x.transfer(ctx, s, "NLST", nil)
	}
	if err != nil || !r.ok() {
		return
	}
	var listed []string
	for line := range strings.Lines(string(data)) {
		listed = append(listed, norm.NFC.String(strings.TrimRight(line, "\r\n")))
	}
	for _, name := range kept {
		if !slices.ContainsFunc(listed, func(l string) bool { return strings.HasSuffix(l, name) }) {
			x.note(namesChanged, []string{name}, append([]string{name + " ≠"}, listed...)...)
			return
		}
	}
}

// removeTimeout is how long the removal of files may take in all, also after Ctrl-C.
const removeTimeout = 30 * time.Second

// remove deletes what the examination has made, in a new session, because the last may have ended or may hang. Of a
// file that was not stored the reply says nothing.
func (x *examination) remove(ctx context.Context) {
	if x.dir == "" && len(x.made) == 0 {
		return
	}
	x.Progress("DELE")
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), removeTimeout)
	defer cancel()
	dir := x.dir
	x.dir = "" // it may not be there
	s, err := x.login(ctx, x.address)
	if err != nil {
		x.note(leftover, []string{cmp.Or(dir, x.prefix+"*")}, err.Error())
		return
	}
	defer s.close()
	if dir != "" {
		if r, err := s.send("CWD " + dir); err == nil && r.code >= 500 {
			return
		}
	}
	for _, name := range x.made {
		_, _ = s.send("DELE " + name)
	}
	if dir != "" {
		_, _ = s.send("CDUP")
		if r, err := s.send("RMD " + dir); err != nil || !r.ok() {
			x.note(leftover, []string{dir}, textOf(r, err))
		}
		return
	}
	for _, name := range x.made {
		if r, err := s.send("SIZE " + name); err != nil || r.ok() {
			x.note(leftover, []string{name}, textOf(r, err))
		}
	}
}

// idle leaves a control connection idle, and looks whether it is there afterwards. A server that says goodbye itself
// has its own limit, with which nothing is wrong.
func (x *examination) idle(ctx context.Context) {
	if x.Idle <= 0 {
		return
	}
	x.apart(ctx, "NOOP "+x.Idle.String(), func(s *session) {
		began := time.Now()
		_ = s.conn.SetDeadline(began.Add(x.Idle))
		r, err := s.read()
		idle := time.Since(began)
		if err != nil && idle >= x.Idle { // as it should
			r, err = s.send("NOOP")
		}
		if err != nil && ctx.Err() == nil {
			x.note(idleCut, []string{fmt.Sprintf("%.0f s", idle.Seconds())}, "NOOP: "+err.Error())
		} else if r.code == 421 {
			x.Progress(fmt.Sprintf("%.0f s: %s", idle.Seconds(), r))
		}
	})
}
