"""An FTP client that does with Python's ftplib what it reads from standard input.

A line is a JSON array, the name of a method of Client and its arguments. The answer is a line too: {"value": ...} when the method
returned, {"error": "..."} when ftplib raised one of its errors.
"""

import ftplib
import json
import ssl
import sys


class Resuming(ftplib.FTP_TLS):
    """FTP_TLS whose data connections resume the TLS session of the control connection."""

    def ntransfercmd(self, cmd, rest=None):
        connection, size = ftplib.FTP.ntransfercmd(self, cmd, rest)
        if self._prot_p:
            connection = self.context.wrap_socket(connection, server_hostname=self.host, session=self.sock.session)
        return connection, size


class Client:
    def connect(self, host, port, ca, passive):
        """Connects, with explicit TLS if ca names a file of certificates to trust, and returns the greeting."""
        if ca:
            self.ftp = ftplib.FTP_TLS(context=ssl.create_default_context(cafile=ca))
        else:
            self.ftp = ftplib.FTP()
        self.ftp.set_pasv(passive)
        return self.ftp.connect(host, port, timeout=180)

    def version(self, version):
        """Allows one version of TLS, "1.2" or "1.3"."""
        context = self.ftp.context
        context.minimum_version = context.maximum_version = {"1.2": ssl.TLSVersion.TLSv1_2, "1.3": ssl.TLSVersion.TLSv1_3}[version]

    def resume(self):
        """Lets data connections resume the TLS session of the control connection."""
        self.ftp.__class__ = Resuming

    def login(self, user, password):
        reply = self.ftp.login(user, password)
        if isinstance(self.ftp, ftplib.FTP_TLS):
            self.ftp.prot_p()
        return reply

    def command(self, line):
        return self.ftp.sendcmd(line)

    def upload(self, local, remote, offset=0):
        with open(local, "rb") as file:
            file.seek(offset)
            return self.ftp.storbinary("STOR " + remote, file, rest=offset or None)

    def append(self, local, remote, offset):
        with open(local, "rb") as file:
            file.seek(offset)
            return self.ftp.storbinary("APPE " + remote, file)

    def download(self, remote, local, offset=0):
        with open(local, "r+b" if offset else "wb") as file:
            file.seek(offset)
            return self.ftp.retrbinary("RETR " + remote, file.write, rest=offset or None)

    def begin(self, command):
        """Begins a transfer. write, read and finish continue it."""
        self.ftp.voidcmd("TYPE I")  # listings leave TYPE A
        self.data = self.ftp.transfercmd(command)

    def write(self, size):
        self.data.sendall(b"x" * size)

    def read(self, size):
        """Reads at most so many bytes of a download, and returns how many there were."""
        length = 0
        while length < size:
            part = self.data.recv(size - length)
            if not part:
                break
            length += len(part)
        return length

    def finish(self):
        if isinstance(self.data, ssl.SSLSocket):
            self.data.unwrap()
        self.data.close()
        return self.ftp.voidresp()

    def rename(self, before, after):
        return self.ftp.rename(before, after)

    def copy(self, before, after):
        self.ftp.sendcmd("SITE CPFR " + before)
        return self.ftp.voidcmd("SITE CPTO " + after)

    def remove(self, name):
        return self.ftp.delete(name)

    def mkdir(self, name):
        return self.ftp.mkd(name)

    def rmdir(self, name):
        return self.ftp.rmd(name)

    def size(self, name):
        self.ftp.voidcmd("TYPE I")
        return self.ftp.size(name)

    def list(self, directory):
        """Returns the lines of LIST, and the names that NLST and MLSD have sent."""
        self.ftp.cwd(directory)
        lines = []
        self.ftp.retrlines("LIST", lines.append)
        return {"LIST": lines, "NLST": self.ftp.nlst(), "MLSD": [name for name, facts in self.ftp.mlsd() if facts["type"] in ("file", "dir")]}


def main():
    client = Client()
    for line in sys.stdin:
        method, *arguments = json.loads(line)
        try:
            answer = {"value": getattr(client, method)(*arguments)}
        except ftplib.all_errors as error:
            answer = {"error": str(error) or repr(error)}
        print(json.dumps(answer), flush=True)


main()
