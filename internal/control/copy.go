package control

import (
	"io/fs"
	"strings"

	"github.com/babelftp/babelftp/i18n"
)

// siteCopy is SITE COPY: both of the others in one, for pathnames without SP.
func (s *session) siteCopy(arg string) {
	from, to, _ := strings.Cut(arg, " ")
	if from == "" || to == "" || strings.Contains(to, " ") {
		s.reply(501, i18n.Syntax, "SITE COPY"+pathnameSyntax+pathnameSyntax)
		return
	}
	err := s.lookup(from, s.op.Has)
	if err == nil {
		err = s.copyTo(s.op.Path, to)
	}
	s.copied(200, err)
}

// siteCopyFrom is SITE CPFR: the file or directory that SITE CPTO will copy, in the way of ProFTPD's mod_copy. Other commands may come
// between the two.
func (s *session) siteCopyFrom(arg string) {
	s.copySource = ""
	if err := s.lookup(arg, s.op.Has); err != nil {
		s.replyError(err)
		return
	}
	s.copySource = s.op.Path
	s.reply(350, i18n.CopyReady)
}

// siteCopyTo is SITE CPTO. S3 copies; nothing comes through this server.
func (s *session) siteCopyTo(arg string) {
	from := s.copySource
	if from == "" {
		s.reply(503, i18n.CopyFromFirst)
		return
	}
	s.copySource = ""
	s.copied(250, s.copyTo(from, arg))
}

func (s *session) copyTo(from, arg string) error {
	name, err := s.resolve(arg)
	if err != nil {
		return err
	}
	if name == "/" {
		return fs.ErrPermission
	}
	return s.perform(func() error {
		to, err := s.op.ResolveForCreate(name, s.op.Has)
		if err != nil {
			return err
		}
		return s.op.Storage.Copy(s.op.Context, from, to)
	})
}

// copied answers with a code, or with what went wrong.
func (s *session) copied(code int, err error) {
	if err != nil {
		s.replyError(err)
		return
	}
	s.reply(code, i18n.Copied)
}
