// Does what a verb says with Apache Commons Net: FTPClient, and FTPSClient under TLS. TestClients explains the verbs and the environment.

import java.io.File;
import java.io.FileInputStream;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.net.InetAddress;
import java.security.KeyStore;
import java.security.cert.Certificate;
import java.security.cert.CertificateFactory;
import java.util.Arrays;
import javax.net.ssl.SSLContext;
import javax.net.ssl.TrustManagerFactory;
import org.apache.commons.net.ftp.FTP;
import org.apache.commons.net.ftp.FTPClient;
import org.apache.commons.net.ftp.FTPFile;
import org.apache.commons.net.ftp.FTPReply;
import org.apache.commons.net.ftp.FTPSClient;

public class CommonsNet {
	private static FTPClient ftp;

	public static void main(String[] args) throws Exception {
		connect();
		run(args[0], Arrays.copyOfRange(args, 1, args.length));
		ftp.logout();
		ftp.disconnect();
	}

	private static void connect() throws Exception {
		String tls = System.getenv("FTP_TLS");
		String version = System.getenv("FTP_TLS_VERSION");
		if (tls.equals("plain")) {
			ftp = new FTPClient();
		} else {
			FTPSClient secure = new FTPSClient(tls.equals("implicit"), context(System.getenv("FTP_CA")));
			if (!version.isEmpty()) {
				secure.setEnabledProtocols(new String[] {"TLSv" + version});
			}
			ftp = secure;
		}
		ftp.setControlEncoding("UTF-8");
		ftp.connect(InetAddress.getByName(System.getenv("FTP_HOST")), Integer.parseInt(System.getenv("FTP_PORT")));
		check(FTPReply.isPositiveCompletion(ftp.getReplyCode()), "connect");
		check(ftp.login(System.getenv("FTP_USER"), System.getenv("FTP_PASSWORD")), "login");
		if (ftp instanceof FTPSClient) {
			((FTPSClient) ftp).execPBSZ(0);
			((FTPSClient) ftp).execPROT("P");
		}
		check(ftp.setFileType(FTP.BINARY_FILE_TYPE), "TYPE");
		if (System.getenv("FTP_DATA").equals("passive")) {
			ftp.enterLocalPassiveMode();
		}
	}

	// context trusts the certificates in a file.
	private static SSLContext context(String file) throws Exception {
		KeyStore store = KeyStore.getInstance(KeyStore.getDefaultType());
		store.load(null);
		try (InputStream in = new FileInputStream(file)) {
			for (Certificate certificate : CertificateFactory.getInstance("X.509").generateCertificates(in)) {
				store.setCertificateEntry("ca" + store.size(), certificate);
			}
		}
		TrustManagerFactory trust = TrustManagerFactory.getInstance(TrustManagerFactory.getDefaultAlgorithm());
		trust.init(store);
		SSLContext context = SSLContext.getInstance("TLS");
		context.init(null, trust.getTrustManagers(), null);
		return context;
	}

	private static void run(String verb, String[] names) throws IOException {
		switch (verb) {
		case "list":
			list(names[0]);
			return;
		case "upload":
		case "abort":
			for (int i = 0; i < names.length; i += 2) {
				upload(names[i], names[i + 1], 0);
			}
			return;
		case "download":
			for (int i = 0; i < names.length; i += 2) {
				download(names[i], names[i + 1]);
			}
			return;
		case "resume-upload":
			upload(names[0], names[1], Long.parseLong(ftp.getSize(names[1])));
			return;
		case "resume-download":
			download(names[0], names[1]);
			return;
		case "put-time":
			upload(names[0], names[1], 0);
			String time = java.time.Instant.ofEpochMilli(new File(names[0]).lastModified()).atOffset(java.time.ZoneOffset.UTC)
				.format(java.time.format.DateTimeFormatter.ofPattern("yyyyMMddHHmmss"));
			check(ftp.setModificationTime(names[1], time), "MFMT");
			return;
		case "get-time":
			download(names[0], names[1]);
			check(new File(names[1]).setLastModified(ftp.mdtmFile(names[0]).getTimestamp().getTimeInMillis()), "MDTM");
			return;
		case "rename":
			check(ftp.rename(names[0], names[1]), "rename");
			return;
		case "delete":
			for (String name : names) {
				check(ftp.deleteFile(name), name);
			}
			return;
		case "mkdir":
			for (String name : names) {
				check(ftp.makeDirectory(name), name);
			}
			return;
		case "rmdir":
			for (String name : names) {
				check(ftp.removeDirectory(name), name);
			}
			return;
		default:
			throw new IOException("no verb is called " + verb);
		}
	}

	// list wants LIST and MLSD to have the same names: mlistDir leaves out lines that it cannot parse.
	private static void list(String directory) throws IOException {
		StringBuilder listed = new StringBuilder();
		for (FTPFile file : ftp.listFiles(directory)) {
			listed.append(file.getName()).append("\n");
		}
		StringBuilder facts = new StringBuilder();
		for (FTPFile file : ftp.mlistDir(directory)) {
			if (!file.getName().startsWith(".")) {
				facts.append(file.getName()).append("\n");
			}
		}
		check(listed.toString().equals(facts.toString()), "LIST and MLSD differ: " + listed + facts);
		System.out.print(listed);
	}

	private static void upload(String local, String remote, long offset) throws IOException {
		try (FileInputStream in = new FileInputStream(local)) {
			in.getChannel().position(offset);
			ftp.setRestartOffset(offset);
			check(ftp.storeFile(remote, in), remote);
		}
	}

	// download continues where the local file ends.
	private static void download(String remote, String local) throws IOException {
		try (OutputStream out = new FileOutputStream(local, true)) {
			ftp.setRestartOffset(new File(local).length());
			check(ftp.retrieveFile(remote, out), remote);
		}
	}

	private static void check(boolean done, String what) throws IOException {
		if (!done) {
			throw new IOException(what + ": " + ftp.getReplyString());
		}
	}
}
