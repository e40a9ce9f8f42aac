package acceptance_test

// officeDevices lists scanners and data loggers.
var officeDevices = []device{
	// https://github.com/drakkan/sftpgo/issues/861
	{
		name:     "Brother scanners",
		settings: "permissions: [write, mkdir]",
		has:      map[string]string{"paperless/": ""},
		script: `
			331 USER DEVICE
			230 PASS SECRET
			250 CWD /paperless
			221 QUIT
			connect
			331 USER DEVICE
			230 PASS SECRET
			250 CWD /paperless
			200 TYPE I
			227 PASV
			226 STOR 06022022_001.pdf <<< %PDF
			221 QUIT`,
		want: map[string]string{"paperless/": "", "paperless/06022022_001.pdf": "%PDF"},
	},
	// It writes the header of a table only if NLST does not show the file:
	// https://github.com/drakkan/sftpgo/issues/676
	{
		name: "Data loggers",
		script: `
			234 AUTH TLS
			331 USER DEVICE
			230 PASS SECRET
			200 PBSZ 0
			200 PROT P
			200 TYPE I
			227 PASV
			550 NLST log.csv
			227 PASV
			226 APPE log.csv <<< time;value\r\n
			227 PASV
			226 APPE log.csv <<< 16:45;7\r\n
			221 QUIT
			connect
			234 AUTH TLS
			331 USER DEVICE
			230 PASS SECRET
			200 PBSZ 0
			200 PROT P
			200 TYPE I
			227 PASV
			226 NLST log.csv >>> log.csv\r\n
			227 PASV
			226 APPE log.csv <<< 16:46;8\r\n
			221 QUIT`,
		want: map[string]string{"log.csv": "time;value\r\n16:45;7\r\n16:46;8\r\n"},
	},
}

// hosts lists mainframes and other hosts.
var hosts = []device{
	// SITE is rejected, and the client continues: https://www.ibm.com/support/pages/site-command-rejected-remote-server
	{
		name: "IBM z/OS",
		script: `
			331 USER DEVICE
			230 PASS SECRET
			5 SITE FIXrecfm 80 LRECL=80 RECFM=FB BLKSIZE=32720
			200 TYPE A
			200 PORT
			226 STOR MYFILE <<< RECORD 1\r\nRECORD 2\r\n
			5 SITE FIXrecfm 80 LRECL=80 RECFM=FB BLKSIZE=32720
			200 PORT
			226 STOU <<< RECORD 3\r\n
			221 QUIT`,
		want: map[string]string{"MYFILE": "RECORD 1\nRECORD 2\n", "ftp-*": "RECORD 3\n"},
	},
	// https://www.ibm.com/docs/en/i/7.2?topic=ssw_ibm_i_72/rzaiq/rzaiqsitet.htm,
	// https://github.com/robinrodricks/FluentFTP/issues/946
	{
		name: "IBM i (AS/400)",
		script: `
			331 USER DEVICE
			230 PASS SECRET
			215 SYST
			5 SITE NAMEFMT 1
			257 PWD
			200 TYPE A
			229 EPSV
			226 STOR ORDERS.CSV <<< 1,2\r\n
			229 EPSV
			226 APPE ORDERS.CSV <<< 3,4\r\n
			229 EPSV
			226 RETR ORDERS.CSV >>> 1,2\r\n3,4\r\n
			221 QUIT`,
		want: map[string]string{"ORDERS.CSV": "1,2\n3,4\n"},
	},
	// Its Ctrl-C sends ABOR with Telnet's Synch (RFC 1123, section 4.1.3.4).
	{
		name: "BSD ftp",
		script: `
			331 USER DEVICE
			230 PASS SECRET
			200 TYPE I
			227 PASV
			150 STOR core <<< part
			abort
			426
			226
			227 PASV
			226 STOR whole <<< all
			221 QUIT`,
		want: map[string]string{"whole": "all"},
	},
}
