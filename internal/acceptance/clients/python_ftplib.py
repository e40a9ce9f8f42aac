"""Does what a verb says with Python's ftplib. TestClients explains the verbs and the environment."""

import ftplib
import os
import signal
import ssl
import sys


class Implicit(ftplib.FTP_TLS):
    """Has TLS from the beginning, which ftplib itself cannot do."""

    def connect(self, *arguments, **options):
        ftplib.FTP.connect(self, *arguments, **options)
        return self.welcome

    @property
    def sock(self):
        return self.socket

    @sock.setter
    def sock(self, connection):
        if connection is not None and not isinstance(connection, ssl.SSLSocket):
            connection = self.context.wrap_socket(connection, server_hostname=self.host)
        self.socket = connection


def connect(environment):
    tls, version = environment["FTP_TLS"], environment["FTP_TLS_VERSION"]
    if tls == "plain":
        ftp = ftplib.FTP()
    else:
        context = ssl.create_default_context(cafile=environment["FTP_CA"])
        if version:
            context.minimum_version = context.maximum_version = {"1.2": ssl.TLSVersion.TLSv1_2, "1.3": ssl.TLSVersion.TLSv1_3}[version]
        ftp = {"explicit": ftplib.FTP_TLS, "implicit": Implicit}[tls](context=context)
    ftp.connect(environment["FTP_HOST"], int(environment["FTP_PORT"]), timeout=60)
    ftp.login(environment["FTP_USER"], environment["FTP_PASSWORD"])
    if tls != "plain":
        ftp.prot_p()
    ftp.set_pasv(environment["FTP_DATA"] == "passive")
    return ftp


def upload(ftp, local, remote, offset=0):
    with open(local, "rb") as file:
        file.seek(offset)
        ftp.storbinary("STOR " + remote, file, rest=offset or None)


def download(ftp, remote, local):
    with open(local, "ab") as file:
        ftp.retrbinary("RETR " + remote, file.write, rest=file.tell() or None)


def run(ftp, verb, names):
    pairs = list(zip(names[::2], names[1::2]))
    if verb == "list":
        ftp.cwd(names[0])
        listed = ftp.nlst()
        if listed != [name for name, facts in ftp.mlsd() if facts["type"] in ("file", "dir")]:
            raise ftplib.Error("NLST and MLSD differ")
        print("\n".join(listed))
    elif verb == "upload":
        for local, remote in pairs:
            upload(ftp, local, remote)
    elif verb == "download":
        for remote, local in pairs:
            download(ftp, remote, local)
    elif verb == "resume-upload":
        ftp.voidcmd("TYPE I")
        upload(ftp, *names, offset=ftp.size(names[1]))
    elif verb == "resume-download":
        download(ftp, *names)
    elif verb == "rename":
        ftp.rename(*names)
    elif verb == "delete":
        for name in names:
            ftp.delete(name)
    elif verb == "mkdir":
        for name in names:
            ftp.mkd(name)
    elif verb == "rmdir":
        for name in names:
            ftp.rmd(name)
    elif verb == "abort":
        def abort(*_):
            ftp.abort()
            sys.exit(1)

        signal.signal(signal.SIGINT, abort)
        upload(ftp, *names)


ftp = connect(os.environ)
run(ftp, sys.argv[1], sys.argv[2:])
ftp.quit()
