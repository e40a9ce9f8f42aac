package reply

import "github.com/babelftp/babelftp/internal/ftp/wire"

// Features holds the values in the reply to FEAT (RFC 2389, 3), which has one line per feature. It is not
// translated.
type Features struct {
	TLS       bool
	Hash      string // selected algorithm of HASH
	Languages string // languages of LANG (RFC 2640, 4.3)
	Facts     string // facts of MLST (RFC 3659, 7.8)
}

// Lines returns the middle lines of the reply.
func (f Features) Lines() []string {
	var lines []string
	if f.TLS {
		lines = append(lines, " AUTH TLS", " PBSZ", " PROT")
	}
	lines = append(lines,
		" AVBL",
		" CLNT",
		" EPRT",
		" EPSV",
		" HASH "+wire.HashFeature(f.Hash),
		" HOST",
		" LANG "+f.Languages,
		" MDTM",
		" MFF Modify;",
		" MFMT",
		" MLST "+f.Facts,
		" RANG STREAM",
		" REST STREAM",
		" SITE COPY", // tells WinSCP that SITE CPFR and SITE CPTO exist
		" SITE HASH "+wire.DefaultHash,
		" SIZE",
		" TVFS",
		" UTF8",
	)
	for _, verb := range wire.HashVerbs() {
		lines = append(
			lines, " "+verb+` "filename" SP EP`) // the format of GlobalSCAPE and Gene6, which their clients expect
	}
	return lines
}
