package control

import (
	"context"
	"io/fs"

	"github.com/babelftp/babelftp/i18n"
)

// siteCopyFrom is SITE CPFR: the file or directory that SITE CPTO will copy, in
// the way of ProFTPD's mod_copy. Other commands may come between the two.
func (s *session) siteCopyFrom(arg string) {
	s.copying = ""
	name, err := s.resolve(arg)
	if err == nil {
		err = s.lookup(name, s.has)
	}
	if err != nil {
		s.fail(err)
		return
	}
	s.copying = s.located
	s.say(350, i18n.CopyReady)
}

// siteCopyTo is SITE CPTO. S3 copies; nothing comes through this server.
func (s *session) siteCopyTo(arg string) {
	from := s.copying
	if from == "" {
		s.say(503, i18n.CopyFromFirst)
		return
	}
	s.copying = ""
	name, err := s.resolve(arg)
	if err == nil && name == "/" {
		err = fs.ErrPermission
	}
	if err == nil {
		err = s.await(func(ctx context.Context) error {
			to, err := s.spellingForNew(name, s.has)
			if err != nil {
				return err
			}
			return s.login.Storage.Copy(ctx, from, to)
		})
	}
	if err != nil {
		s.fail(err)
		return
	}
	s.say(250, i18n.Copied)
}

// has tells whether there is a file or directory of a name, by an error.
func (s *session) has(name string) error {
	_, err := s.login.Storage.Stat(name)
	return err
}
