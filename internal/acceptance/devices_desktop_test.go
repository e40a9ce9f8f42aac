package acceptance_test

// desktopPrograms are interactive programs, most of them for Windows.
var desktopPrograms = []device{
	// It logs in as anonymous before it prompts for a user name. Some of its commands are in lower case:
	// https://github.com/mtheall/ftpd/issues/72, https://github.com/giampaolo/pyftpdlib/issues/266
	{
		name: "Windows Explorer",
		has:  map[string]string{"Bericht.txt": "old"},
		script: `
			331 USER anonymous
			530 PASS IEUser@
			connect
			331 USER DEVICE
			230 PASS SECRET
			200 opts utf8 on
			215 syst
			214 site help
			257 PWD
			200 noop
			250 CWD /
			200 TYPE A
			227 PASV
			226 LIST >>> Bericht.txt
			257 MKD Neuer Ordner
			350 RNFR Neuer Ordner
			250 RNTO Übersicht
			250 CWD /Übersicht/
			200 TYPE I
			227 PASV
			226 STOR Maße.txt <<< 1 m\r\n
			250 CWD /
			213 SIZE Bericht.txt
			227 PASV
			226 RETR Bericht.txt >>> old
			250 DELE Bericht.txt
			221 QUIT`,
		want: map[string]string{"Übersicht/": "", "Übersicht/Maße.txt": "1 m\r\n"},
	},
	// It sends OPTS before USER, uses the old command names, and supports only active mode:
	// https://github.com/xreef/SimpleFTPServer/issues/48, https://github.com/taoyouh/FtpServer/pull/12
	{
		name: "Windows ftp.exe",
		script: `
			200 OPTS UTF8 ON
			331 USER DEVICE
			230 PASS SECRET
			257 XPWD
			257 XMKD sales
			250 CWD sales
			200 PORT
			226 STOR till1.txt <<< 1;2\r\n
			200 PORT
			226 NLST >>> till1.txt
			200 PORT
			226 LIST >>> till1.txt
			200 PORT
			226 NLST *.txt >>> till1.txt
			200 TYPE I
			200 PORT
			226 RETR till1.txt >>> 1;2\r\n
			350 RNFR till1.txt
			250 RNTO ../till1.txt
			250 XCUP
			250 XRMD sales
			221 QUIT`,
		want: map[string]string{"till1.txt": "1;2\r\n"},
	},
	// https://github.com/proftpd/proftpd/issues/1495, https://github.com/michaellukashov/Far-NetBox/issues/141 (which
	// has WinSCP's code)
	{
		name:     "WinSCP",
		settings: "objects: {listing_times: set}",
		script: `
			234 AUTH TLS
			331 USER DEVICE
			230 PASS SECRET
			215 SYST
			211 FEAT
			200 CLNT WinSCP-release-6.3.5
			200 OPTS UTF8 ON
			200 PBSZ 0
			200 PROT P
			257 PWD
			250 CWD /
			257 PWD
			200 TYPE A
			227 PASV
			226 MLSD >>> type=cdir
			257 MKD Neues Verzeichnis
			350 RNFR /Neues Verzeichnis
			250 RNTO /Fotos
			250 CWD /Fotos
			257 PWD
			200 TYPE I
			227 PASV
			226 STOR Zürich.jpg <<< JPEG
			213 MFMT 20190203040506 Zürich.jpg
			200 TYPE A
			227 PASV
			226 MLSD >>> modify=20190203040506
			200 NOOP
			221 QUIT`,
		want: map[string]string{"Fotos/": "", "Fotos/Zürich.jpg": "JPEG"},
	},
	// It tests REST at the beginning, without a transfer:
	// https://github.com/XboxUnity/freestyledash/issues/12
	{
		name: "FlashFXP",
		script: `
			331 USER DEVICE
			230 PASS SECRET
			215 SYST
			211 FEAT
			350 REST 100
			350 REST 0
			257 PWD
			200 TYPE A
			227 PASV
			226 LIST -al >>> EMPTY
			257 MKD hdd1
			250 CWD hdd1
			257 PWD
			350 REST 100
			227 PASV
			226 LIST -al >>> EMPTY
			200 TYPE I
			227 PASV
			226 STOR default.xex <<< XEX
			250 CDUP
			221 QUIT`,
		want: map[string]string{"hdd1/": "", "hdd1/default.xex": "XEX"},
	},
	// https://github.com/JackSlateur/curlftpfs/issues/9
	{
		name: "curlftpfs",
		has:  map[string]string{"notes.txt": "0123456789"},
		script: `
			331 USER DEVICE
			230 PASS SECRET
			257 PWD
			227 PASV
			200 TYPE A
			226 LIST -a >>> notes.txt
			200 TYPE I
			213 SIZE notes.txt
			227 PASV
			350 REST 4
			226 RETR notes.txt >>> 456789
			227 PASV
			226 APPE notes.txt <<< ABC
			221 QUIT`,
		want: map[string]string{"notes.txt": "0123456789ABC"},
	},
	// It ends commands with Java's line separator: https://github.com/samtools/htsjdk/issues/470
	{
		name: "htsjdk", lineEnd: "\n",
		has: map[string]string{"reads/sample 1.bam": "0123456789"},
		script: `
			331 USER DEVICE
			230 PASS SECRET
			200 TYPE I
			213 SIZE reads/sample 1.bam
			227 PASV
			350 REST 4
			226 RETR reads/sample 1.bam >>> 456789
			221 QUIT`,
		want: map[string]string{"reads/sample 1.bam": "0123456789"},
	},
	// It lists with -aln and sends STAT for a file: https://github.com/thephpleague/flysystem/issues/1387
	{
		name: "League Flysystem",
		has:  map[string]string{"docs/": "", "docs/a b.txt": "text", "docs/old/c.txt": "text"},
		script: `
			331 USER DEVICE
			230 PASS SECRET
			200 OPTS UTF8 ON
			227 PASV
			200 TYPE A
			226 LIST -aln docs/ >>> a b.txt
			227 PASV
			226 LIST -alnR docs/ >>> old
			213 STAT docs/a b.txt
			227 PASV
			226 LIST -A docs/a b.txt >>> a b.txt
			227 PASV
			226 LIST -aln docs/old/ >>> c.txt
			250 DELE docs/old/c.txt
			250 RMD docs/old
			227 PASV
			226 LIST -aln >>> docs
			221 QUIT`,
		want: map[string]string{"docs/": "", "docs/a b.txt": "text"},
	},
	// Its commands end with SP: https://github.com/rashevskyv/dbi/issues/162
	{
		name: "DBI (Nintendo Switch)",
		has:  map[string]string{"Ünï.nsp": "NSP"},
		script: `
			331 USER DEVICE
			230 PASS SECRET
			250 CWD /
			200 TYPE A
			227 PASV
			226 MLSD EMPTY >>> Ünï.nsp
			200 TYPE A
			227 PASV
			226 LIST EMPTY >>> Ünï.nsp
			200 TYPE I EMPTY
			227 PASV EMPTY
			226 RETR Ünï.nsp >>> NSP
			221 QUIT EMPTY`,
		want: map[string]string{"Ünï.nsp": "NSP"},
	},
}
