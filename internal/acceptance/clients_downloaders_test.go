package acceptance_test

import (
	"net/url"
	"path/filepath"
)

var wgetClient = client{
	name:    "wget",
	version: []string{"wget", "--version"},
	job:     wgetJob,
	lacks: lacking(
		"it downloads only", "upload", "resume up", "rename", "delete", "directories", "tree up", "time up", "abort",
		"quota").
		and("it shows a listing as a page in HTML only", "list"),
	fails: reasons{"time down": "with `--timestamping` it takes the time from LIST, which shows only the day of an " +
		"old file."},
}

func wgetJob(c *connection, verb string, names ...string) invocation {
	args := []string{
		"wget", "--no-verbose", "--tries=1", "--timeout=60", "--no-config", "--ca-certificate", c.ca, "--ftp-user",
		c.user, "--ftp-password", c.password,
	}
	scheme := "ftp"
	switch c.tls {
	case "explicit":
		scheme = "ftps"
	case "implicit":
		scheme = "ftps"
		args = append(args, "--ftps-implicit")
	}
	if c.version != "" {
		args = append(args, "--secure-protocol=TLSv"+map[string]string{"1.2": "1_2", "1.3": "1_3"}[c.version])
	}
	if c.data == "active" {
		args = append(args, "--no-passive-ftp")
	}
	// an absolute pathname begins with two slashes
	there := func(name string) string { return scheme + "://" + c.address() + "/" + escapePath(name) }
	var lines [][]string
	with := func(more ...string) { lines = append(lines, append(args[:len(args):len(args)], more...)) }
	switch verb {
	case "list":
		with("--output-document=-", there(names[0])+"/")
	case "download":
		pairwise(names, func(from, to string) { with("--output-document", to, there(from)) })
	case "resume-download":
		with("--continue", "--output-document", names[1], there(names[0]))
	case "get-time":
		with("--timestamping", "--directory-prefix", filepath.Dir(names[1]), there(names[0]))
		lines = append(lines, []string{"mv", filepath.Join(filepath.Dir(names[1]), filepath.Base(names[0])), names[1]})
	case "get-tree":
		with(
			"--recursive", "--level=inf", "--timestamping", "--no-host-directories", "--cut-dirs=4",
			"--restrict-file-names=nocontrol", "--directory-prefix", names[1], there(names[0])+"/")
	}
	return commands(lines...)
}

var wget2Client = client{
	name:    "wget2",
	version: []string{"wget2", "--version"},
	lacks:   lackingAllBut("it has no FTP"),
}

var aria2Client = client{
	name:    "aria2",
	version: []string{"aria2c", "--version"},
	job:     aria2Job,
	lacks: lackingAllBut(
		"it downloads single files only, without TLS", "names", "odd names", "download", "resume down", "time down",
		"passive", "active",
		"IPv6", "IPv6 active", "wrong password"),
}

func aria2Job(c *connection, verb string, names ...string) invocation {
	args := []string{
		"aria2c", "--no-conf", "--quiet", "--max-tries=1", "--allow-overwrite=true", "--ftp-reuse-connection=false",
		"--auto-file-renaming=false", "--continue=true",
		"--ftp-user", c.user, "--ftp-passwd", c.password,
		"--ftp-pasv=" + map[string]string{"passive": "true", "active": "false"}[c.data],
	}
	if verb == "get-time" {
		args = append(args, "--remote-time=true")
	}
	var lines [][]string
	pairwise(names, func(from, to string) {
		there := "ftp://" + c.address() + "/" + escapePath(from)
		lines = append(
			lines, append(args[:len(args):len(args)], "--dir", filepath.Dir(to), "--out", filepath.Base(to), there))
	})
	return commands(lines...)
}

var axelClient = client{
	name:    "axel",
	simple:  true,
	version: []string{"axel", "--version"},
	job:     axelJob,
	lacks: lackingAllBut(
		"it downloads single files only, by PASV, under implicit TLS of the version that it likes", "names",
		"odd names", "download", "passive", "implicit", "wrong password"),
	fails: reasons{
		"download": "it crashes when a file is empty.",
		"implicit": "it accepts certificates of names only, not of addresses.",
	},
}

func axelJob(c *connection, verb string, names ...string) invocation {
	scheme := map[string]string{"plain": "ftp", "implicit": "ftps"}[c.tls]
	var lines [][]string
	pairwise(names, func(from, to string) {
		login := url.UserPassword(c.user, c.password)
		there := scheme + "://" + login.String() + "@" + c.address() + from // unescaped, because axel decodes nothing
		lines = append(lines, []string{"axel", "--verbose", "--output", to, there})
	})
	job := commands(lines...)
	job.env = []string{"SSL_CERT_FILE=" + c.ca}
	return job
}
