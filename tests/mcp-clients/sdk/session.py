"""Lists the tools of Dalsegno, calls each of them with the official Python SDK, and prints the exchange.

    session.py CALLS WAY VERSION URL             a service; MCP_KEY is its API key
    session.py CALLS WAY VERSION COMMAND...      a server on standard input and output

Exits 1 if a tool has no call in CALLS, if a call is refused, or if an answer lacks the expected text.
"""

import asyncio
import json
import os
import re
import sys
from importlib.metadata import version as version_of

from httpx2 import AsyncClient
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client

# The SDK has no name for the version before the current one: `initialize` negotiates it.
MODES = {"2025-11-25": "legacy", "2026-07-28": "2026-07-28"}


def server_at(target):
    if not target[0].startswith("http"):
        return StdioServerParameters(command=target[0], args=target[1:], env=dict(os.environ))
    key = os.environ.get("MCP_KEY")
    if key is None:
        return target[0]
    headers = {"Authorization": f"Bearer {key}"}
    return streamable_http_client(target[0], http_client=AsyncClient(headers=headers))


def filled(value, known):
    """Replaces `$name` by known values."""
    text = json.dumps(value)
    for name, said in known.items():
        text = text.replace(f"${name}", said)
    return json.loads(text)


async def main(calls, way, version, *target):
    with open(calls) as file:
        calls = json.load(file)
    known = {"way": way}
    async with Client(server_at(target), mode=MODES[version]) as client:
        print(f"# Python SDK {version_of('mcp')}, {way}: protocol {client.protocol_version}")
        tools = [tool.name for tool in (await client.list_tools()).tools]
        print("> tools/list\n< " + ", ".join(tools))
        assert client.protocol_version == version, client.protocol_version
        missing = set(tools) - {call["tool"] for call in calls}
        assert not missing, f"{calls} has no call of {missing}"
        for call in calls:
            if call["tool"] not in tools:
                continue
            arguments, says = filled(call["arguments"], known), filled(call["says"], known)
            print(f"> {call['tool']} {json.dumps(arguments)}")
            result = await client.call_tool(call["tool"], arguments)
            text = "".join(block.text for block in result.content)
            print("< " + text.replace("\n", " "), flush=True)
            assert not result.is_error and says in text, f"{call['tool']} should say {says}"
            for name, said in re.findall(r'"(task_id|session_id)":"([^"]+)"', text):
                known[name] = said


asyncio.run(main(*sys.argv[1:]))
