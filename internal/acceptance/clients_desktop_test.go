package acceptance_test

import (
	"errors"
	"fmt"
	"maps"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

var fileZillaClient = client{
	name: "FileZilla", version: debianVersion("filezilla"), job: byScript("filezilla.py", "/usr/bin/python3"),
	lacks: lacking("its dialogs are not driven", "rename", "delete", "directories").
		and("it has no setting for the newest version of TLS", "TLS 1.2"),
}

var rcloneClient = client{
	name:    "rclone",
	version: []string{"rclone", "version"},
	job:     rcloneJob,
	lacks: lacking("it has no active mode", "active", "active TLS", "IPv6 active").
		and("it sends a file anew", "resume up", "resume down"),
}

func rcloneJob(c *connection, verb string, names ...string) invocation {
	remote := func(name string) string { return "acme:" + name }
	var lines [][]string
	run := func(args ...string) {
		lines = append(lines, append([]string{"rclone", "--config=", "--retries=1"}, args...))
	}
	each := func(command string) {
		for _, name := range names {
			run(command, remote(name))
		}
	}
	switch verb {
	case "list":
		run("lsf", "--dir-slash=false", remote(names[0]))
	case "upload", "put-time", "abort":
		pairwise(names, func(from, to string) { run("copyto", from, remote(to)) })
	case "download", "get-time":
		pairwise(names, func(from, to string) { run("copyto", remote(from), to) })
	case "rename":
		run("moveto", remote(names[0]), remote(names[1]))
	case "delete":
		each("deletefile")
	case "mkdir":
		each("mkdir")
	case "rmdir":
		each("rmdir")
	case "put-tree":
		run("sync", names[0], remote(names[1]))
	case "get-tree":
		run("sync", remote(names[0]), names[1])
	}
	host := c.host
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	job := commands(lines...)
	job.args[2] = `RCLONE_CONFIG_ACME_PASS=$(printf %s "$PASSWORD" | rclone --config= obscure -) && export RCLONE_CONFIG_ACME_PASS && ` + job.args[2]
	job.env = []string{
		"PASSWORD=" + c.password, "SSL_CERT_FILE=" + c.ca, "RCLONE_CONFIG_ACME_TYPE=ftp",
		"RCLONE_CONFIG_ACME_HOST=" + host,
		"RCLONE_CONFIG_ACME_PORT=" + c.port, "RCLONE_CONFIG_ACME_USER=" + c.user,
		fmt.Sprintf("RCLONE_CONFIG_ACME_EXPLICIT_TLS=%t", c.tls == "explicit"),
		fmt.Sprintf("RCLONE_CONFIG_ACME_TLS=%t", c.tls == "implicit"),
		fmt.Sprintf("RCLONE_CONFIG_ACME_DISABLE_TLS13=%t", c.version == "1.2"),
	}
	return job
}

var duplicityClient = client{
	name:    "duplicity",
	version: []string{"duplicity", "--version"},
	simple:  true,
	job:     duplicityJob,
	lacks: lackingAllBut(
		"it makes backups", "tree up", "tree down", "passive", "active", "explicit", "IPv6", "wrong password", "quota").
		and("its program for FTP, lftp, does that", "active"),
	fails: reasons{"IPv6": "it writes IPv6 addresses without brackets; use a host name."},
	instead: map[string]func(w *worker) error{
		"tree up": (*worker).backUp, "tree down": (*worker).backUp, "passive": (*worker).backUp,
		"explicit": func(w *worker) error { w.connection.tls = "explicit"; return w.backUp() },
		"IPv6":     func(w *worker) error { w.connection.host = "::1"; return w.backUp() },
		"quota": func(w *worker) error {
			w.connection.user = "carol"
			tree := w.file("tree")
			writeTree(w.t, tree, map[string][]byte{"file": content(3 << 20)})
			return w.refused(quotaRefused, "put-tree", tree, "/backup")
		},
		"wrong password": func(w *worker) error {
			w.connection.password = "wrong"
			return w.refused(loginRefused, "list", w.remote("backup"))
		},
	},
}

// backUp backs up a directory tree twice and restores it.
func (w *worker) backUp() error {
	tree := aTree()
	local, back := w.file("tree"), w.file("back")
	writeTree(w.t, local, tree)
	if err := w.mkdir(); err != nil {
		return err
	}
	err := errors.Join(
		w.run("put-tree", local, w.remote("backup")), w.run("put-tree", local, w.remote("backup")),
		w.run("get-tree", w.remote("backup"), back))
	if err != nil {
		return err
	}
	if got := readTree(w.t, back); !maps.EqualFunc(got, tree, slices.Equal) {
		return fmt.Errorf("back come %q, or their contents differ", slices.Sorted(maps.Keys(got)))
	}
	return nil
}

func duplicityJob(c *connection, verb string, names ...string) invocation {
	scheme := map[string]string{"plain": "ftp", "explicit": "ftpes"}[c.tls]
	there := func(name string) string { return scheme + "://" + c.user + "@" + c.address() + "/" + name }
	options := []string{"--no-encryption", "--backend-retry-delay=1", "--ssl-cacert-file=" + c.ca,
		"--archive-dir=" + c.file("archive"), "--name=" + c.host}
	var args []string
	switch verb {
	case "list":
		args = []string{"collection-status", there(names[0])}
	case "put-tree":
		args = []string{"incremental", "--allow-source-mismatch", names[0], there(names[1])}
		if _, err := os.Stat(c.file("archive")); err != nil {
			args[0] = "full"
		}
	case "get-tree":
		args = []string{"restore", there(names[0]), names[1]}
	}
	return invocation{args: append(append([]string{"duplicity"}, args...), options...),
		env: []string{"FTP_PASSWORD=" + c.password}}
}

var gioClient = client{
	name:    "gio (GNOME)",
	version: []string{"sh", "-c", "dpkg-query -W gvfs-backends"},
	job:     gioJob,
	lacks: lacking("it has no setting for active mode", "active", "active TLS", "IPv6 active").
		and("it has no setting for the version of TLS", "TLS 1.2", "TLS 1.3").
		and("it does not trust a certificate that the system does not trust", "explicit", "implicit").
		and("it cannot resume", "resume up", "resume down").
		and("it has no command for trees", "tree up", "tree down").
		and("it keeps no times over FTP", "time up", "time down"),
}

func gioJob(c *connection, verb string, names ...string) invocation {
	base := "ftp://" + strings.ReplaceAll(url.PathEscape(c.user), "@", "%40") + "@" + c.address()
	remote := func(name string) string { return base + escapePath(name) }
	var lines [][]string
	run := func(args ...string) { lines = append(lines, append([]string{"gio"}, args...)) }
	each := func(command string) {
		for _, name := range names {
			run(command, remote(name))
		}
	}
	switch verb {
	case "list":
		run("list", remote(names[0]))
	case "upload", "abort", "put-time":
		pairwise(names, func(from, to string) { run("copy", "--preserve", from, remote(to)) })
	case "download", "get-time":
		pairwise(names, func(from, to string) { run("copy", "--preserve", remote(from), to) })
	case "rename":
		run("rename", remote(names[0]), path.Base(names[1]))
	case "delete":
		each("remove")
	case "mkdir":
		each("mkdir")
	case "rmdir":
		each("remove")
	}
	job := commands(lines...)
	job.args[2] = `printf '%s\n' "$PASSWORD" | gio mount "$BASE" >&2 && ` + job.args[2]
	job.args = append([]string{"dbus-run-session", "--"}, job.args...)
	job.env = []string{"PASSWORD=" + c.password, "BASE=" + base + "/", "XDG_RUNTIME_DIR=" + filepath.Clean(c.path)}
	return job
}
