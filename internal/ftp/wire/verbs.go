package wire

import "slices"

// OldVerbs maps the verbs of RFC 775, which RFC 1123, 4.1.3.1 requires, to the current verbs.
func OldVerbs() map[string]string {
	return map[string]string{"XCWD": "CWD", "XCUP": "CDUP", "XPWD": "PWD", "XMKD": "MKD", "XRMD": "RMD"}
}

// UnimplementedVerbs returns verbs from other documents that this server does not implement.
func UnimplementedVerbs() []string {
	return []string{"SMNT", "ADAT", "CONF", "ENC", "MIC", "LPRT", "LPSV", "MAIL", "MSND", "MSOM", "MSAM", "MRSQ",
		"MRCP", "XRSQ", "XSEM",
		"XSEN", "XRCP", "SPSV", "CSID", "COMB", "DSIZ", "RMDA", "MFCT", "MD5", "THMB"}
}

// TakesPathname reports whether the argument of a command may be a pathname, which may contain LF (RFC 2640, 3.1).
// Unknown commands are included, so that the text after an LF in their argument is never run as a command.
func TakesPathname(verb string) bool {
	return !slices.Contains([]string{"USER", "PASS", "ACCT", "HOST", "LANG", "CLNT", "AUTH", "PBSZ", "PROT", "OPTS", "HELP",
		"TYPE", "MODE", "STRU", "REST", "ALLO", "EPSV", "PORT", "EPRT", "RANG"}, verb)
}
