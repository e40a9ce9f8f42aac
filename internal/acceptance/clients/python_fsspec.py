"""Does what a verb says with the FTP file system of fsspec. TestClients explains the verbs and the environment."""

import os
import sys

import fsspec


def run(fs, verb, names):
    pairs = list(zip(names[::2], names[1::2]))
    if verb == "list":
        for path in fs.ls(names[0], detail=False):
            print(path.rstrip("/").rsplit("/", 1)[-1])
    elif verb in ("upload", "abort"):
        for local, remote in pairs:
            fs.put_file(local, remote)
    elif verb == "download":
        for remote, local in pairs:
            fs.get_file(remote, local)
    elif verb == "resume-download":
        remote, local = names
        with open(local, "ab") as file, fs.open(remote, "rb") as source:
            source.seek(file.tell())
            while block := source.read(1 << 20):
                file.write(block)
    elif verb == "put-tree":
        fs.put(names[0] + "/", names[1] + "/", recursive=True)
    elif verb == "get-tree":
        fs.get(names[0] + "/", names[1] + "/", recursive=True)
    elif verb == "rename":
        fs.mv(*names)
    elif verb == "delete":
        for name in names:
            fs.rm(name)
    elif verb == "mkdir":
        for name in names:
            fs.mkdir(name)
    elif verb == "rmdir":
        for name in names:
            fs.rmdir(name)
    else:
        raise ValueError("no verb is called " + verb)


e = os.environ
run(fsspec.filesystem("ftp", host=e["FTP_HOST"], port=int(e["FTP_PORT"]), username=e["FTP_USER"], password=e["FTP_PASSWORD"]), sys.argv[1], sys.argv[2:])
