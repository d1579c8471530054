"""What docs/mcp.md shows of the official Python client, with what it was told printed as JSON."""

import asyncio
import json
import os
import sys

from mcp import ClientSession
from mcp.client.streamable_http import streamablehttp_client


async def main(url: str) -> None:
    headers = {"Authorization": f"Bearer {os.environ['PORTCULLIS_SECRET']}"}
    async with streamablehttp_client(url, headers=headers) as (read, write, _):
        async with ClientSession(read, write) as session:
            started = await session.initialize()
            tools = (await session.list_tools()).tools
            accounts = await session.call_tool("list_accounts", {"limit": 2})
            refused = await session.call_tool("get_account", {"account_id": "Acme"})
            told = {
                "server": started.serverInfo.name,
                "protocol": started.protocolVersion,
                "tools": [tool.name for tool in tools],
                "accounts": accounts.structuredContent,
                "refused": [refused.isError, refused.content[0].text],
            }
            print(json.dumps(told))


asyncio.run(main(sys.argv[1]))
