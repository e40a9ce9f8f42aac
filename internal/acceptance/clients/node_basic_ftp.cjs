// Does what a verb says with basic-ftp. TestClients explains the verbs and the environment.

const fs = require("node:fs");
const ftp = require("basic-ftp");

const { FTP_HOST, FTP_PORT, FTP_USER, FTP_PASSWORD, FTP_CA, FTP_TLS, FTP_TLS_VERSION } = process.env;

async function run(client, verb, names) {
	switch (verb) {
	case "list":
		for (const entry of await client.list(names[0])) console.log(entry.name);
		return;
	case "upload":
	case "abort":
		for (let i = 0; i < names.length; i += 2) await client.uploadFrom(names[i], names[i + 1]);
		return;
	case "download":
		for (let i = 0; i < names.length; i += 2) await client.downloadTo(names[i + 1], names[i]);
		return;
	case "resume-upload":
		await client.appendFrom(names[0], names[1], { localStart: await client.size(names[1]) });
		return;
	case "resume-download": {
		const start = fs.statSync(names[1]).size;
		await client.downloadTo(fs.createWriteStream(names[1], { flags: "a" }), names[0], start);
		return;
	}
	case "get-time": {
		await client.downloadTo(names[1], names[0]);
		const time = await client.lastMod(names[0]);
		fs.utimesSync(names[1], time, time);
		return;
	}
	case "put-tree":
		await client.uploadFromDir(names[0], names[1]);
		return;
	case "get-tree":
		await client.downloadToDir(names[1], names[0]);
		return;
	case "rename":
		await client.rename(names[0], names[1]);
		return;
	case "delete":
		for (const name of names) await client.remove(name);
		return;
	case "mkdir":
		for (const name of names) await client.send("MKD " + name);
		return;
	case "rmdir":
		for (const name of names) await client.removeDir(name);
		return;
	}
	throw new Error("no verb is called " + verb);
}

async function main() {
	const client = new ftp.Client(60_000);
	const secureOptions = { ca: FTP_TLS === "plain" ? undefined : fs.readFileSync(FTP_CA) };
	if (FTP_TLS_VERSION) secureOptions.minVersion = secureOptions.maxVersion = "TLSv" + FTP_TLS_VERSION;
	const secure = { plain: false, explicit: true, implicit: "implicit" }[FTP_TLS];
	try {
		await client.access({ host: FTP_HOST, port: Number(FTP_PORT), user: FTP_USER, password: FTP_PASSWORD, secure, secureOptions });
		await run(client, process.argv[2], process.argv.slice(3));
	} finally {
		client.close();
	}
}

main().catch((error) => {
	console.error(error);
	process.exit(1);
});
