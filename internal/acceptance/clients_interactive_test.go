package acceptance_test

import (
	"path"
	"strconv"
	"strings"
)

// typed quotes the words of a command for BSD's ftp and similar clients.
func typed(words ...string) string {
	quoted := make([]string, len(words))
	for i, word := range words {
		quoted[i] = lftpQuote(word)
	}
	return strings.Join(quoted, " ")
}

// storesTheBeginning describes what Ctrl-C does in some clients.
const storesTheBeginning = "after Ctrl-C the server [stores what it has received](guarantees.md#uploads)."

// noQuotes applies to clients that parse commands like BSD's ftp.
const noQuotes = "names with a double quote cannot be typed."

var ncftpClient = client{
	name:    "ncftp",
	simple:  true,
	version: []string{"sh", "-c", "ncftpput | sed -n 1p"},
	job:     ncftpJob,
	lacks:   lacking("it has no TLS", withTLS...).and("it knows IPv4 only", "IPv6", "IPv6 active"),
	fails:   reasons{"abort": storesTheBeginning},
}

func ncftpJob(c *connection, verb string, names ...string) invocation {
	options := []string{"-u", c.user, "-p", c.password, "-P", c.port, "-t", "60", "-r", "1",
		map[string]string{"passive": "-F", "active": "-E"}[c.data]}
	var lines [][]string
	run := func(program string, args ...string) {
		lines = append(lines, append(append([]string{program}, options...), args...))
	}
	var session []string
	switch verb {
	case "list":
		run("ncftpls", "-1", "ftp://"+c.host+escapePath(names[0])+"/")
	case "upload", "abort":
		pairwise(names, func(from, to string) { run("ncftpput", "-V", "-C", c.host, from, to) })
	case "put-time":
		pairwise(names, func(from, to string) { run("ncftpput", "-V", "-y", c.host, path.Dir(to), from) })
	case "resume-upload":
		run("ncftpput", "-V", "-z", "-s", c.host, path.Dir(names[1]), names[0])
	case "download":
		pairwise(names, func(from, to string) { run("ncftpget", "-V", "-C", c.host, from, to) })
	case "resume-download":
		run("ncftpget", "-V", "-z", c.host, path.Dir(names[1]), names[0])
	case "get-time":
		run("ncftpget", "-V", c.host, path.Dir(names[1]), names[0])
		lines = append(lines, []string{"mv", path.Join(path.Dir(names[1]), path.Base(names[0])), names[1]})
	case "put-tree":
		run("ncftpput", "-V", "-z", "-R", c.host, path.Dir(names[1]), names[0])
	case "get-tree":
		run("ncftpget", "-V", "-z", "-R", c.host, path.Dir(names[1]), names[0])
	case "rename":
		session = append(session, "rename "+typed(names...))
	case "delete":
		session = append(session, "rm "+typed(names...))
	case "mkdir":
		session = append(session, "mkdir "+typed(names...))
	case "rmdir":
		session = append(session, "rmdir "+typed(names...))
	}
	if session == nil {
		return commands(lines...)
	}
	login := "open " + typed("-u", c.user, "-p", c.password, "-P", c.port, c.host)
	return invocation{args: []string{"ncftp"}, stdin: script(append(append([]string{login}, session...), "quit")...)}
}

var tnftpClient = client{
	name:    "tnftp",
	simple:  true,
	version: []string{"sh", "-c", "dpkg-query -W tnftp"},
	job:     bsdJob("tnftp", "-n", "-i", "-v", "-e", "-g"),
	lacks: lacking("it has no TLS for FTP", withTLS...).and(
		"it has no command for trees", "tree up", "tree down").and("it sets no time", "time up"),
	fails: reasons{"abort": storesTheBeginning, "odd names": noQuotes},
}

var inetutilsClient = client{
	name:    "inetutils-ftp",
	simple:  true,
	version: []string{"inetutils-ftp", "--version"},
	job:     bsdJob("inetutils-ftp", "-n", "-i", "-v", "-e", "-g"),
	lacks: lacking("it has no TLS", withTLS...).and("it has no command for trees", "tree up", "tree down").
		and("it keeps no time", "time up", "time down"),
	fails: reasons{"abort": storesTheBeginning, "odd names": noQuotes},
}

// bsdJob runs BSD's ftp client or one of its descendants, which read commands from standard input.
func bsdJob(args ...string) func(c *connection, verb string, names ...string) invocation {
	return func(c *connection, verb string, names ...string) invocation {
		lines := []string{"open " + typed(c.host, c.port), "user " + typed(c.user, c.password), "binary"}
		pairs := func(word string) {
			pairwise(names, func(from, to string) { lines = append(lines, word+" "+typed(from, to)) })
		}
		each := func(word string) {
			for _, name := range names {
				lines = append(lines, word+" "+typed(name))
			}
		}
		switch verb {
		case "list":
			lines = append(lines, "cd "+typed(names[0]), "nlist . list.txt")
		case "upload", "abort":
			pairs("put")
		case "download", "get-time":
			pairs("get")
		case "resume-upload":
			lines = append(lines, "restart "+strconv.Itoa(resumeSize/2), "put "+typed(names...))
		case "resume-download":
			pairs("reget")
		case "rename":
			pairs("rename")
		case "delete":
			each("delete")
		case "mkdir":
			each("mkdir")
		case "rmdir":
			each("rmdir")
		}
		mode := map[string]string{"passive": "-p", "active": "-A"}[c.data]
		job := invocation{args: append(append([]string{}, args...), mode), stdin: script(append(lines, "quit")...)}
		if verb == "list" {
			job.args = []string{"sh", "-c", shellLine(job.args) + " >&2 && sed 's|^\\./||' list.txt"}
		}
		return job
	}
}

var yafcClient = client{
	name:    "yafc",
	version: []string{"yafc", "--version"},
	simple:  true,
	job:     yafcJob,
	lacks:   lacking("it has no TLS", withTLS...).and("it sets no time", "time up"),
}

func yafcJob(c *connection, verb string, names ...string) invocation {
	lines := []string{"set passive_mode " + map[string]string{"passive": "on", "active": "off"}[c.data]}
	escaped := func(name string) string {
		return strings.NewReplacer(" ", `\ `, `"`, `\"`, "'", `\'`, `\`, `\\`, "[", `\[`, "{", `\{`).Replace(name)
	}
	put := func(command string) {
		pairwise(names, func(from, to string) {
			lines = append(lines, "cd "+escaped(path.Dir(to)), command+" "+escaped(from))
		})
	}
	after := "true" // a shell command
	get := func(command string) {
		pairwise(names, func(from, to string) {
			lines = append(lines, command+" "+escaped(from))
			after += " && mv " + shellLine([]string{path.Base(from), to})
		})
	}
	each := func(word string) {
		for _, name := range names {
			lines = append(lines, word+" "+escaped(name))
		}
	}
	switch verb {
	case "list":
		lines = append(lines, "cd "+escaped(names[0]), "nlist")
	case "upload", "abort":
		put("put")
	case "put-time":
		put("put --preserve")
	case "download":
		get("get")
	case "get-time":
		get("get --preserve")
	case "resume-upload":
		put("put --resume")
	case "resume-download":
		lines = append(lines, "lcd "+escaped(path.Dir(names[1])), "get --resume "+escaped(names[0]))
	case "rename":
		lines = append(lines, "mv "+escaped(names[0])+" "+escaped(names[1]))
	case "delete":
		each("rm --force")
	case "mkdir":
		each("mkdir")
	case "rmdir":
		each("rmdir")
	case "put-tree":
		put("put --recursive --newer")
	case "get-tree":
		lines = append(lines, "lcd "+escaped(path.Dir(names[1])), "get --recursive --newer "+escaped(names[0]))
	}
	there := "ftp://" + c.user + ":" + c.password + "@" + c.address()
	yafc := shellLine([]string{"yafc", "--quiet", "--verbose", "--norc", "--workdir=" + c.path, there})
	switch verb {
	case "list":
		yafc += " | grep -v -e GSSAPI -e bookmark -e '^passive mode'"
	case "download", "get-time":
		yafc += " && " + after
	}
	return invocation{args: []string{"sh", "-c", yafc}, stdin: script(append(lines, "quit")...)}
}
