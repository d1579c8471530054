"""An agent by the official Python client, of either generation, with what it was told printed as JSON."""

import asyncio
import json
import os
import sys

URL = sys.argv[1]
HEADERS = {"Authorization": f"Bearer {os.environ['PORTCULLIS_SECRET']}"}
ACCOUNTS = ("list_accounts", {"limit": 2})
REFUSED = ("list_accounts", {"limit": 0})


async def second_generation(mode: str) -> dict:
    import httpx2
    from mcp import Client
    from mcp.client.streamable_http import streamable_http_client

    async with httpx2.AsyncClient(headers=HEADERS) as http:
        async with Client(streamable_http_client(URL, http_client=http), mode=mode) as client:
            tools = (await client.list_tools()).tools
            accounts = await client.call_tool(*ACCOUNTS)
            refused = await client.call_tool(*REFUSED)
            return {
                "server": client.server_info.name,
                "protocol": client.protocol_version,
                "tools": [tool.name for tool in tools],
                "accounts": accounts.structured_content,
                "refused": [refused.is_error, refused.content[0].text],
            }


async def first_generation() -> dict:
    from mcp import ClientSession
    from mcp.client.streamable_http import streamablehttp_client

    async with streamablehttp_client(URL, headers=HEADERS) as (read, write, _):
        async with ClientSession(read, write) as session:
            started = await session.initialize()
            tools = (await session.list_tools()).tools
            accounts = await session.call_tool(*ACCOUNTS)
            refused = await session.call_tool(*REFUSED)
            return {
                "server": started.serverInfo.name,
                "protocol": started.protocolVersion,
                "tools": [tool.name for tool in tools],
                "accounts": accounts.structuredContent,
                "refused": [refused.isError, refused.content[0].text],
            }


async def main() -> None:
    try:
        from mcp import Client  # noqa: F401
    except ImportError:
        told = [await first_generation()]
    else:
        told = [await second_generation(mode) for mode in ("legacy", "auto")]
    print(json.dumps(told))


asyncio.run(main())
