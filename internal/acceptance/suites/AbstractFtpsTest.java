package org.apache.commons.net.ftp;

import static org.junit.Assert.assertTrue;

import java.io.IOException;
import java.io.OutputStream;
import org.junit.runner.Description;
import org.junit.runner.JUnitCore;
import org.junit.runner.notification.Failure;
import org.junit.runner.notification.RunListener;

/**
 * What FTPSClientTest of Apache Commons Net takes from the class of this name, for a server that runs. TestClients
 * explains the environment.
 */
public abstract class AbstractFtpsTest {
    protected static final boolean IMPLICIT = false;
    protected static final long TEST_TIMEOUT = 60_000; // milliseconds

    private final boolean endpointChecking;

    AbstractFtpsTest(boolean endpointChecking, String users, String keys) {
        this.endpointChecking = endpointChecking;
    }

    protected static void setupServer(boolean implicit, String users, String keys, String home) {}

    protected static void trace(String message) {}

    protected FTPSClient loginClient() throws IOException {
        FTPSClient client = new FTPSClient(env("FTP_TLS").equals("implicit"));
        client.setEndpointCheckingEnabled(endpointChecking);
        client.connect(env("FTP_HOST"), Integer.parseInt(env("FTP_PORT")));
        assertTrue(client.getReplyString(), client.login(env("FTP_USER"), env("FTP_PASSWORD")));
        client.setFileType(FTP.BINARY_FILE_TYPE);
        client.execPBSZ(0);
        client.execPROT("P");
        switch (env("FTP_DATA")) {
            case "passive":
                client.enterLocalPassiveMode();
                break;
            case "EPSV":
                client.enterLocalPassiveMode();
                client.setUseEPSVwithIPv4(true);
                break;
        }
        return client;
    }

    protected void retrieveFile(String pathname) throws IOException {
        FTPSClient client = loginClient();
        try {
            for (int i = 0; i < 2; i++) {
                assertTrue(client.getReplyString(), client.retrieveFile(pathname, OutputStream.nullOutputStream()));
            }
        } finally {
            client.disconnect();
        }
    }

    private static String env(String name) {
        return System.getenv(name);
    }

    public static void main(String[] args) {
        JUnitCore core = new JUnitCore();
        core.addListener(new RunListener() {
            private boolean failed;

            @Override
            public void testStarted(Description test) {
                failed = false;
            }

            @Override
            public void testFailure(Failure failure) {
                failed = true;
                System.err.println(failure.getTrace());
            }

            @Override
            public void testFinished(Description test) {
                System.out.println((failed ? "not ok " : "ok ") + test.getMethodName());
            }
        });
        core.run(FTPSClientTest.class);
    }
}
