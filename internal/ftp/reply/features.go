package reply

import "github.com/babelftp/babelftp/internal/ftp/wire"

// Features is what FEAT shows of a session (RFC 2389 3): one line for each feature. They are not translated.
type Features struct {
	TLS       bool
	Hash      string // the algorithm of HASH
	Languages string // of LANG (RFC 2640 4.3)
	Facts     string // of MLST (RFC 3659 7.8)
}

// Lines returns the lines in the middle of the reply.
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
		" SITE COPY", // by which WinSCP knows SITE CPFR and SITE CPTO
		" SIZE",
		" TVFS",
		" UTF8",
	)
	for _, verb := range wire.HashVerbs() {
		lines = append(
			lines, " "+verb+` "filename" SP EP`) // as GlobalSCAPE's server and Gene6's, whose clients look for it
	}
	return lines
}
