// Does what a verb says with the packages ftp and promise-ftp, which have the same methods. TestClients explains the verbs and the environment.
//
// usage: FTP_PACKAGE=ftp|promise-ftp

const fs = require("node:fs");
const { pipeline } = require("node:stream/promises");
const { promisify } = require("node:util");

const { FTP_PACKAGE, FTP_HOST, FTP_PORT, FTP_USER, FTP_PASSWORD, FTP_CA, FTP_TLS, FTP_TLS_VERSION } = process.env;
const Client = require(FTP_PACKAGE);

// call calls a method, of promise-ftp as it is, of ftp with a callback.
function call(client, method, ...args) {
	return FTP_PACKAGE === "ftp" ? promisify(client[method]).call(client, ...args) : client[method](...args);
}

async function download(client, remote, file) {
	await pipeline(await call(client, "get", remote), file);
}

async function run(client, verb, names) {
	switch (verb) {
	case "list":
		for (const entry of await call(client, "list", names[0])) console.log(entry.name);
		return;
	case "upload":
	case "abort":
		for (let i = 0; i < names.length; i += 2) await call(client, "put", names[i], names[i + 1]);
		return;
	case "download":
		for (let i = 0; i < names.length; i += 2) await download(client, names[i], fs.createWriteStream(names[i + 1]));
		return;
	case "resume-upload": {
		const start = await call(client, "size", names[1]);
		await call(client, "append", fs.createReadStream(names[0], { start }), names[1]);
		return;
	}
	case "resume-download":
		await call(client, "restart", fs.statSync(names[1]).size);
		await download(client, names[0], fs.createWriteStream(names[1], { flags: "a" }));
		return;
	case "get-time": {
		await download(client, names[0], fs.createWriteStream(names[1]));
		const time = await call(client, "lastMod", names[0]);
		fs.utimesSync(names[1], time, time);
		return;
	}
	case "rename":
		await call(client, "rename", names[0], names[1]);
		return;
	case "delete":
	case "mkdir":
	case "rmdir":
		for (const name of names) await call(client, verb, name);
		return;
	}
	throw new Error("no verb is called " + verb);
}

async function main() {
	const secureOptions = { ca: FTP_TLS === "plain" ? undefined : fs.readFileSync(FTP_CA) };
	if (FTP_TLS_VERSION) secureOptions.minVersion = secureOptions.maxVersion = "TLSv" + FTP_TLS_VERSION;
	const secure = { plain: false, explicit: true, implicit: "implicit" }[FTP_TLS];
	const options = { host: FTP_HOST, port: Number(FTP_PORT), user: FTP_USER, password: FTP_PASSWORD, secure, secureOptions };
	const client = new Client();
	if (FTP_PACKAGE === "ftp") {
		client.on("error", fail);
		await new Promise((ready) => {
			client.on("ready", ready);
			client.connect(options);
		});
	} else {
		await client.connect(options);
	}
	await run(client, process.argv[2], process.argv.slice(3));
	client.end();
}

function fail(error) {
	console.error(error);
	process.exit(1);
}

main().catch(fail);
