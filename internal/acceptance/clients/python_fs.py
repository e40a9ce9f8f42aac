"""Does what a verb says with the FTP file system of PyFilesystem2. TestClients explains the verbs and the environment."""

import os
import sys

import fs.copy
import fs.ftpfs
import fs.mirror
import fs.move
import fs.osfs


def run(remote, verb, names):
    pairs = list(zip(names[::2], names[1::2]))
    if verb == "list":
        for name in remote.listdir(names[0]):
            print(name)
    elif verb in ("upload", "abort"):
        for source, target in pairs:
            with open(source, "rb") as file:
                remote.upload(target, file)
    elif verb == "download":
        for source, target in pairs:
            with open(target, "wb") as file:
                remote.download(source, file)
    elif verb == "resume-upload":
        with open(names[0], "rb") as file, remote.open(names[1], "ab") as target:
            file.seek(remote.getsize(names[1]))
            while block := file.read(1 << 20):
                target.write(block)
    elif verb == "resume-download":
        with open(names[1], "ab") as file, remote.open(names[0], "rb") as source:
            source.seek(file.tell())
            while block := source.read(1 << 20):
                file.write(block)
    elif verb == "put-tree":
        fs.mirror.mirror(fs.osfs.OSFS(names[0]), remote.makedirs(names[1], recreate=True))
    elif verb == "get-tree":
        fs.mirror.mirror(remote.opendir(names[0]), fs.osfs.OSFS(names[1], create=True))
    elif verb == "get-time":
        fs.copy.copy_file(remote, names[0], fs.osfs.OSFS(os.path.dirname(names[1])), os.path.basename(names[1]), preserve_time=True)
    elif verb == "rename":
        remote.move(*names)
    elif verb == "delete":
        for name in names:
            remote.remove(name)
    elif verb == "mkdir":
        for name in names:
            remote.makedir(name)
    elif verb == "rmdir":
        for name in names:
            remote.removedir(name)
    else:
        raise ValueError("no verb is called " + verb)


e = os.environ
arguments = (e["FTP_HOST"], e["FTP_USER"], e["FTP_PASSWORD"])
with fs.ftpfs.FTPFS(*arguments, port=int(e["FTP_PORT"]), tls=e["FTP_TLS"] == "explicit", timeout=60) as remote:
    run(remote, sys.argv[1], sys.argv[2:])
