package acceptance_test

import (
	"net/url"
	"strings"
)

var curlClient = client{
	name:    "curl",
	version: []string{"curl", "--version"},
	core:    true,
	job:     curlJob,
	lacks: map[string]string{
		"tree up":   "it transfers files, not trees",
		"tree down": "it transfers files, not trees",
		"time up":   "it sets no time",
		// curl 7.87 and 7.88 forget to encrypt the data connection: https://github.com/curl/curl/issues/10666
		"active TLS": "a defect of versions 7.87 and 7.88",
	},
}

func curlJob(c *connection, verb string, names ...string) invocation {
	args := []string{
		"curl", "-q", "--silent", "--show-error", "--fail-early", "--globoff", "--cacert", c.ca, "--user",
		c.user + ":" + c.password,
	}
	base := "ftp://" + c.address()
	switch c.tls {
	case "explicit":
		args = append(args, "--ssl-reqd")
	case "implicit":
		base = "ftps://" + c.address()
	}
	if c.version != "" {
		args = append(args, "--tlsv"+c.version, "--tls-max", c.version)
	}
	if c.data == "active" {
		args = append(args, "--ftp-port", "-")
	}
	there := func(name string) string { return base + escapePath(name) }
	quote := func(commands ...string) {
		args = append(args, "--head", base+"/")
		for _, line := range commands {
			args = append(args, "--quote", line)
		}
	}
	each := func(word string) {
		var commands []string
		for _, name := range names {
			commands = append(commands, word+" "+name)
		}
		quote(commands...)
	}
	switch verb {
	case "list":
		args = append(args, "--list-only", there(names[0])+"/")
	case "upload", "abort":
		for i := 0; i < len(names); i += 2 {
			args = append(args, "--upload-file", names[i], there(names[i+1]))
		}
	case "download":
		for i := 0; i < len(names); i += 2 {
			args = append(args, "--output", names[i+1], there(names[i]))
		}
	case "resume-upload":
		args = append(args, "--continue-at", "-", "--upload-file", names[0], there(names[1]))
	case "resume-download":
		args = append(args, "--continue-at", "-", "--output", names[1], there(names[0]))
	case "get-time":
		args = append(args, "--remote-time", "--output", names[1], there(names[0]))
	case "rename":
		quote("RNFR "+names[0], "RNTO "+names[1])
	case "delete":
		each("DELE")
	case "mkdir":
		each("MKD")
	case "rmdir":
		each("RMD")
	}
	return invocation{args: args}
}

// escapePath escapes a pathname for a URL.
func escapePath(name string) string {
	segments := strings.Split(name, "/")
	for i := range segments {
		segments[i] = url.PathEscape(segments[i])
	}
	return strings.Join(segments, "/")
}

var lftpClient = client{
	name:    "lftp",
	version: []string{"lftp", "--version"},
	core:    true,
	job:     lftpJob,
	lacks:   map[string]string{},
}

func lftpJob(c *connection, verb string, names ...string) invocation {
	onOff := map[bool]string{true: "yes", false: "no"}
	scheme := "ftp"
	if c.tls == "implicit" {
		scheme = "ftps"
	}
	lines := []string{
		"set cmd:fail-exit yes", "set net:max-retries 1", "set net:timeout 30", "set xfer:log no",
		"set ssl:ca-file " + lftpQuote(c.ca),
		"set ftp:passive-mode " + onOff[c.data == "passive"],
		"set ftp:ssl-force " + onOff[c.tls != "plain"],
		"set ftp:ssl-allow " + onOff[c.tls != "plain"],
	}
	if c.version != "" {
		lines = append(lines, "set ssl:priority NORMAL:-VERS-ALL:+VERS-TLS"+c.version)
	}
	lines = append(
		lines, "open --user "+lftpQuote(c.user)+" --password "+lftpQuote(c.password)+" "+scheme+"://"+c.address())
	quoted := make([]string, len(names))
	for i, name := range names {
		quoted[i] = lftpQuote(name)
	}
	pairs := func(word string) {
		for i := 0; i < len(quoted); i += 2 {
			lines = append(lines, word+" "+quoted[i]+" -o "+quoted[i+1])
		}
	}
	switch verb {
	case "list":
		lines = append(lines, "cd "+quoted[0], "nlist")
	case "upload", "abort", "put-time":
		pairs("put")
	case "download", "get-time":
		pairs("get")
	case "resume-upload":
		pairs("put -c")
	case "resume-download":
		pairs("get -c")
	case "rename":
		lines = append(lines, "mv "+quoted[0]+" "+quoted[1])
	case "delete":
		lines = append(lines, "rm "+strings.Join(quoted, " "))
	case "mkdir":
		lines = append(lines, "mkdir "+strings.Join(quoted, " "))
	case "rmdir":
		lines = append(lines, "rmdir "+strings.Join(quoted, " "))
	case "put-tree":
		lines = append(lines, "mirror --reverse --no-perms --parallel=4 "+quoted[0]+" "+quoted[1])
	case "get-tree":
		lines = append(lines, "mirror --parallel=4 "+quoted[0]+" "+quoted[1])
	}
	return invocation{args: []string{"lftp", "--norc"}, stdin: script(lines...)}
}

var pythonClient = client{
	name:    "Python ftplib",
	version: []string{"python3", "--version"},
	core:    true,
	job:     byScript("python_ftplib.py", "python3"),
	lacks: map[string]string{
		"tree up":   "it has no function for trees",
		"tree down": "it has no function for trees",
		"time up":   "it has no function for times",
		"time down": "it has no function for times",
	},
}
