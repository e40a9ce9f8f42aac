package wire

// OldVerbs are the names of commands in RFC 775, which RFC 1123 4.1.3.1 asks for, with their present names.
func OldVerbs() map[string]string {
	return map[string]string{"XCWD": "CWD", "XCUP": "CDUP", "XPWD": "PWD", "XMKD": "MKD", "XRMD": "RMD"}
}

// UnimplementedVerbs are commands that other documents describe and this server does not do.
func UnimplementedVerbs() []string {
	return []string{"SMNT", "ADAT", "CONF", "ENC", "MIC", "LPRT", "LPSV", "MAIL", "MSND", "MSOM", "MSAM", "MRSQ",
		"MRCP", "XRSQ", "XSEM",
		"XSEN", "XRCP", "SPSV", "CSID", "COMB", "DSIZ", "RMDA", "MFCT", "MD5", "THMB"}
}
