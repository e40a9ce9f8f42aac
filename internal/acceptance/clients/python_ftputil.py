"""Does what a verb says with ftputil. TestClients explains the verbs and the environment."""

import ftplib
import os
import ssl
import sys

import ftputil
import ftputil.session


class FTPS(ftplib.FTP_TLS):
    """Trusts the certificates of the test, and has the TLS version that the test wants."""

    def __init__(self, **options):
        context = ssl.create_default_context(cafile=os.environ["FTP_CA"])
        if version := os.environ["FTP_TLS_VERSION"]:
            context.minimum_version = context.maximum_version = {"1.2": ssl.TLSVersion.TLSv1_2, "1.3": ssl.TLSVersion.TLSv1_3}[version]
        super().__init__(context=context, **options)


def join(*names):
    return "/".join(name for name in names if name not in ("", "."))


def run(host, verb, names):
    pairs = list(zip(names[::2], names[1::2]))
    if verb == "list":
        print("\n".join(host.listdir(names[0])))
    elif verb in ("upload", "abort"):
        for local, remote in pairs:
            host.upload(local, remote)
    elif verb == "download":
        for remote, local in pairs:
            host.download(remote, local)
    elif verb == "resume-download":
        with open(names[1], "ab") as file, host.open(names[0], "rb", rest=file.tell()) as source:
            host.copyfileobj(source, file)
    elif verb == "put-tree":
        for folder, _, files in os.walk(names[0]):
            there = join(names[1], os.path.relpath(folder, names[0]))
            host.makedirs(there, exist_ok=True)
            for name in files:
                host.upload_if_newer(os.path.join(folder, name), join(there, name))
    elif verb == "get-tree":
        for folder, _, files in host.walk(names[0]):
            here = os.path.join(names[1], os.path.relpath(folder, names[0]))
            os.makedirs(here, exist_ok=True)
            for name in files:
                host.download_if_newer(join(folder, name), os.path.join(here, name))
    elif verb == "rename":
        host.rename(*names)
    elif verb == "delete":
        for name in names:
            host.remove(name)
    elif verb == "mkdir":
        for name in names:
            host.mkdir(name)
    elif verb == "rmdir":
        for name in names:
            host.rmdir(name)
    else:
        raise ValueError("no verb is called " + verb)


e = os.environ
sessions = ftputil.session.session_factory(
    FTPS if e["FTP_TLS"] == "explicit" else ftplib.FTP, int(e["FTP_PORT"]), e["FTP_DATA"] == "passive", encoding="utf-8"
)
with ftputil.FTPHost(e["FTP_HOST"], e["FTP_USER"], e["FTP_PASSWORD"], session_factory=sessions) as host:
    run(host, sys.argv[1], sys.argv[2:])
