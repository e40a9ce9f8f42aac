"""Does what a verb says with aioftp. TestClients explains the verbs and the environment."""

import asyncio
import os
import pathlib
import ssl
import sys

import aioftp


def options(environment):
    if environment["FTP_TLS"] == "plain":
        return {}
    context = ssl.create_default_context(cafile=environment["FTP_CA"])
    return {"ssl": context}


async def copy(stream, file):
    async for block in stream.iter_by_block():
        file.write(block)
    await stream.finish()


async def upload(client, local, remote, offset=0):
    with open(local, "rb") as file:
        file.seek(offset)
        async with client.upload_stream(remote, offset=offset) as stream:
            while block := file.read(1 << 16):
                await stream.write(block)


async def run(client, verb, names):
    pairs = list(zip(names[::2], names[1::2]))
    if verb == "list":
        for path, _ in await client.list(names[0]):
            print(path.name)
    elif verb in ("upload", "abort"):
        for local, remote in pairs:
            await client.upload(local, remote, write_into=True)
    elif verb == "download":
        for remote, local in pairs:
            await client.download(remote, local, write_into=True)
    elif verb == "resume-upload":
        facts = await client.stat(names[1])
        await upload(client, *names, offset=int(facts["size"]))
    elif verb == "resume-download":
        remote, local = names
        with open(local, "ab") as file:
            await copy(await client.download_stream(remote, offset=file.tell()), file)
    elif verb == "put-tree":
        await client.upload(*names, write_into=True)
    elif verb == "get-tree":
        await client.download(*names, write_into=True)
    elif verb == "rename":
        await client.rename(*names)
    elif verb == "delete":
        for name in names:
            await client.remove_file(name)
    elif verb == "mkdir":
        for name in names:
            await client.make_directory(name)
    elif verb == "rmdir":
        for name in names:
            await client.remove_directory(name)
    else:
        raise ValueError("no verb is called " + verb)


async def main():
    e = os.environ
    arguments = (e["FTP_HOST"], int(e["FTP_PORT"]), e["FTP_USER"], e["FTP_PASSWORD"])
    async with aioftp.Client.context(*arguments, **options(e)) as client:
        await run(client, sys.argv[1], sys.argv[2:])


asyncio.run(main())
