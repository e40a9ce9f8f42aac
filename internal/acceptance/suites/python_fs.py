"""Runs the tests that PyFilesystem2 has for every file system. TestClients explains the environment."""

import os
import sys
import unittest

import fs.ftpfs
import fs.test


def connect():
    e = os.environ
    arguments = (e["FTP_HOST"], e["FTP_USER"], e["FTP_PASSWORD"])
    return fs.ftpfs.FTPFS(*arguments, port=int(e["FTP_PORT"]), tls=e["FTP_TLS"] == "explicit", timeout=10)


class TestFTP(fs.test.FSTestCases, unittest.TestCase):
    def make_fs(self):
        return connect()

    def destroy_fs(self, remote):
        remote.close()
        with connect() as again:  # some tests have closed the other
            again.removetree("/")


class Result(unittest.TextTestResult):
    def addSuccess(self, test):
        super().addSuccess(test)
        print("ok", test.id().rpartition(".")[2])

    def addFailure(self, test, error):
        super().addFailure(test, error)
        print("not ok", test.id().rpartition(".")[2])

    def addError(self, test, error):
        super().addError(test, error)
        print("not ok", test.id().rpartition(".")[2])


unittest.main(testRunner=unittest.TextTestRunner(sys.stderr, resultclass=Result))
