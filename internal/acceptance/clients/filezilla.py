"""Drives FileZilla on a display of its own. It takes the connection from the environment, and the verb and the names from its arguments.

FileZilla has no commands. So its settings, its site and its queue are written before it starts, and keys do the rest. What it has done
is in its log.
"""

import base64
import ftplib
import os
import posixpath
import re
import shutil
import signal
import sqlite3
import ssl
import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from xml.sax.saxutils import escape

env = os.environ
verb, names = sys.argv[1], sys.argv[2:]
config = Path(env["HOME"], ".config/filezilla")
logfile = Path(env["HOME"], "filezilla.log")
protocol = {"explicit": 4, "implicit": 3, "plain": 6}[env["FTP_TLS"]]
mode = env["FTP_DATA"]

# What FileZilla does with a file that exists, by its numbers.
OVERWRITE, NEWER, RESUME = 1, 2, 5

# Settings of which some keep dialogs away.
settings = {
    "Greeting version": "99.0.0",
    "Greeting resources": "",
    "Update Check": 0,
    "Logging file": logfile,
    "Logging filesize limit": 0,
    "Number of Transfers": 2,
    "File exists action download": NEWER,
    "File exists action upload": NEWER,
    "Preserve timestamps": 1,
    "Reconnect count": 0,
    "Timeout": 60,
    "Minimum TLS Version": 3 if env["FTP_TLS_VERSION"] == "1.3" else 2,
    "File doubleclick action": 0,  # to transfer it
    "Dir doubleclick action": 1,  # the same
    "Prompt password save": 0,
    "Persistent Choices": 0,
    "Disable update footer": 1,
    "Language Code": "en_US",  # the log is read
}


def document(text):
    return f'<?xml version="1.0" encoding="UTF-8"?>\n<FileZilla3 version="3.63.0" platform="*nix">{text}</FileZilla3>\n'


def element(tag, value, /, **attributes):
    return f"<{tag}{''.join(f' {k}={chr(34)}{escape(v)}{chr(34)}' for k, v in attributes.items())}>{escape(str(value))}</{tag}>"


def element_of(tag, *elements):
    return f"<{tag}>{''.join(elements)}</{tag}>"


def safe_path(path):
    """A pathname as FileZilla stores it: its type, no prefix, and each segment after its length."""
    return " ".join(["1 0"] + [f"{len(s)} {s}" for s in path.split("/") if s])


def configure(local, remote):
    shutil.rmtree(config, ignore_errors=True)
    config.mkdir(parents=True)
    lines = "".join(element("Setting", value, name=name) for name, value in settings.items())
    (config / "filezilla.xml").write_text(document(f"<Settings>{lines}</Settings>"))
    (config / "sitemanager.xml").write_text(document("<Servers><Server>" + "".join([
        element("Host", env["FTP_HOST"]), element("Port", env["FTP_PORT"]), element("Protocol", protocol), element("Type", 0),
        element("User", env["FTP_USER"]), element("Pass", base64.b64encode(env["FTP_PASSWORD"].encode()).decode(), encoding="base64"),
        element("Logontype", 1), element("PasvMode", "MODE_" + mode.upper()), element("EncodingType", "Auto"), element("BypassProxy", 0),
        element("Name", "acme"), element("LocalDir", local), element("RemoteDir", safe_path(remote)),
        element("SyncBrowsing", 0), element("DirectoryComparison", 0),
    ]) + "</Server></Servers>"))
    trusted = ""
    if env["FTP_TLS"] != "plain":
        der = ssl.PEM_cert_to_DER_cert(Path(env["FTP_CA"]).read_text())
        trusted = element_of("Certificate", element("Data", der.hex()), element("ActivationTime", 1), element("ExpirationTime", 1 << 40),
                             element("Host", env["FTP_HOST"]), element("Port", env["FTP_PORT"]), element("TrustSANs", 0))
    (config / "trustedcerts.xml").write_text(document(
        element_of("TrustedCerts", trusted) + element_of("InsecureHosts", element("Host", env["FTP_HOST"], Port=env["FTP_PORT"]))))


def queue(files, action):
    """files are of (download, local, remote)."""
    database = sqlite3.connect(config / "queue.sqlite3")
    database.executescript("""
        PRAGMA encoding = "UTF-16le";
        CREATE TABLE servers (id INTEGER PRIMARY KEY AUTOINCREMENT NOT NULL, host TEXT NOT NULL, port INTEGER, user TEXT, password TEXT, account TEXT,
          keyfile TEXT, protocol INTEGER, type INTEGER, logontype INTEGER, timezone_offset INTEGER, transfer_mode TEXT, max_connections INTEGER,
          encoding TEXT, bypass_proxy INTEGER, post_login_commands TEXT, name TEXT, parameters TEXT, site_path TEXT DEFAULT NULL);
        CREATE TABLE files (id INTEGER PRIMARY KEY AUTOINCREMENT NOT NULL, server INTEGER NOT NULL, source_file TEXT, target_file TEXT, local_path INTEGER,
          remote_path INTEGER, size INTEGER, error_count INTEGER, priority INTEGER, flags INTEGER, default_exists_action INTEGER, extra_flags TEXT);
        CREATE TABLE local_paths (id INTEGER PRIMARY KEY AUTOINCREMENT NOT NULL, path TEXT NOT NULL);
        CREATE TABLE remote_paths (id INTEGER PRIMARY KEY AUTOINCREMENT NOT NULL, path TEXT NOT NULL);
        PRAGMA user_version = 7;
    """)
    database.execute("INSERT INTO servers (id, host, port, user, password, protocol, type, logontype, transfer_mode, max_connections, encoding, bypass_proxy, name) "
                     "VALUES (1, ?, ?, ?, ?, ?, 0, 1, ?, 0, 'Auto', 0, 'acme')",
                     (env["FTP_HOST"], int(env["FTP_PORT"]), env["FTP_USER"], env["FTP_PASSWORD"], protocol, mode))
    for i, (download, local, remote) in enumerate(files, 1):
        database.execute("INSERT INTO local_paths VALUES (?, ?)", (i, os.path.dirname(local) + "/"))
        database.execute("INSERT INTO remote_paths VALUES (?, ?)", (i, safe_path(posixpath.dirname(remote))))
        here, there = os.path.basename(local), posixpath.basename(remote)
        size = -1 if download else os.path.getsize(local)
        database.execute("INSERT INTO files (server, source_file, target_file, local_path, remote_path, size, priority, flags, default_exists_action) "
                         "VALUES (1, ?, ?, ?, ?, ?, 2, ?, ?)",
                         (there if download else here, here if download else there, i, i, size, 0x10 if download else 0, action))
    database.commit()
    database.close()


WIDTH, HEIGHT = 1280, 1024

# Where the lists of files are on the screen: the yellow folder of their first row, which is that of the parent directory.
LOCAL_LIST, REMOTE_LIST = (49, 523), (655, 523)


class Screen:
    """An X server of its own, and FileZilla on it."""

    def __enter__(self):
        signal.signal(signal.SIGTERM, lambda *_: sys.exit("terminated"))
        logfile.write_text("")
        readable, writable = os.pipe()
        self.x = subprocess.Popen(["Xvfb", "-displayfd", str(writable), "-screen", "0", f"{WIDTH}x{HEIGHT}x24", "-fbdir", env["HOME"],
                                   "-nolisten", "tcp"], pass_fds=[writable], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(writable)
        with os.fdopen(readable) as numbers:
            env["DISPLAY"] = ":" + numbers.readline().strip()
        self.app = subprocess.Popen(["filezilla", "--site=0/acme"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        return self

    def __exit__(self, *_):
        for process in self.app, self.x:
            process.terminate()
            process.wait()

    def log(self):
        return logfile.read_text()

    def count(self, line):
        """How often the log has a line."""
        return len(re.findall(line, self.log()))

    def until(self, condition):
        """Waits for a condition, unless FileZilla tells an error or ends."""
        while not condition():
            if self.count("Error:") or self.app.poll() is not None:
                sys.exit(self.log())
            time.sleep(0.05)

    def connect(self):
        """Waits until both lists show a directory, which is after the log tells that it has come."""
        self.until(lambda: all(self.shows_directory(place) for place in (LOCAL_LIST, REMOTE_LIST)) and self.count("Status: Directory listing of .* successful"))

    def finish(self, files):
        """Waits until so many files are there, or were there before."""
        self.until(lambda: self.count("Status: File transfer (successful|skipped)") >= files)

    def do(self, *arguments):
        return subprocess.run(["xdotool", *arguments], stdout=subprocess.PIPE, text=True, check=True).stdout

    def colors(self, x, y, size=8):
        """Yields the red, green and blue around a place, from the file in the format of xwd that Xvfb keeps."""
        image = Path(env["HOME"], "Xvfb_screen0").read_bytes()
        colormap, = struct.unpack_from(">I", image, 76)
        start = struct.unpack_from(">I", image)[0] + 12 * colormap
        for row in range(y - size, y + size):
            for column in range(x - size, x + size):
                pixel = start + 4 * (WIDTH * row + column)
                blue, green, red = image[pixel:pixel + 3]
                yield red, green, blue

    def shows_directory(self, place):
        return any(red > 200 and green > 150 and blue < 100 for red, green, blue in self.colors(*place))

    def type(self, *keys, at=None):
        """Clicks at a place, and types keys. The window has the focus before that, so the keys go to where the click sets it."""
        window = self.do("search", "--onlyvisible", "--name", "FileZilla").split()[-1]
        click = ["mousemove", str(at[0]), str(at[1]), "click", "1"] if at else []
        self.do("windowfocus", "--sync", window, *click, "key", "--clearmodifiers", *keys)


def transfer(files, action):
    """Transfers files, each (download, local, remote), by the queue."""
    configure(env["HOME"], "/")
    queue(files, action)
    with Screen() as screen:
        screen.connect()
        screen.type("ctrl+p")
        screen.finish(len(files))


def send(local, remote):
    """Uploads all that a directory has, by its list."""
    configure(local, remote)
    files = sum(len(names) for _, _, names in os.walk(local))
    with Screen() as screen:
        screen.connect()
        screen.type("Home", "Down", "ctrl+a", "Return", at=LOCAL_LIST)
        screen.finish(files)


def files_in(ftp, directory):
    """How many files a directory has, in all."""
    types = {name: facts["type"] for name, facts in ftp.mlsd(directory)}
    directories = [name for name in types if types[name] == "dir"]
    return list(types.values()).count("file") + sum(files_in(ftp, f"{directory}/{name}") for name in directories)


def fetch(remote, local):
    """Downloads all that a directory has, by its list."""
    configure(local, remote)
    with Screen() as screen:
        screen.connect()
        # FileZilla does not say when it has looked into all directories.
        with ftplib.FTP() as ftp:
            ftp.connect(env["FTP_HOST"], int(env["FTP_PORT"]))
            ftp.login(env["FTP_USER"], env["FTP_PASSWORD"])
            files = files_in(ftp, remote)
        screen.type("Home", "Down", "ctrl+a", "Return", at=REMOTE_LIST)
        screen.finish(files)


def main():
    pairs = list(zip(names[::2], names[1::2]))
    if verb in ("upload", "resume-upload", "put-time", "abort"):
        transfer([(False, local, remote) for local, remote in pairs], RESUME if verb == "resume-upload" else OVERWRITE)
    elif verb in ("download", "resume-download", "get-time"):
        transfer([(True, local, remote) for remote, local in pairs], RESUME if verb == "resume-download" else OVERWRITE)
    elif verb == "list":
        with tempfile.TemporaryDirectory() as local:
            fetch(names[0], local)
            print("\n".join(os.listdir(local)))
    elif verb == "get-tree":
        os.makedirs(names[1], exist_ok=True)
        fetch(names[0], names[1])
    elif verb == "put-tree":
        send(os.path.dirname(names[0]), posixpath.dirname(names[1]))


main()
