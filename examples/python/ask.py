"""Ask another agent a question over MCP, wait for the answer, and print it.

Usage: python3 ask.py ME AGENT QUESTION
"""

import asyncio
import os
import subprocess
import sys
import uuid

from mcp import Client, StdioServerParameters


class Refused(Exception):
    """mailtree refused a call."""


async def call(client: Client, tool: str, **arguments) -> dict:
    """Calls a tool and returns its answer."""
    result = await client.call_tool(tool, arguments)
    if result.is_error:
        raise Refused(f"{tool}: {result.content[0].text}")
    return result.structured_content


async def ask(client: Client, me: str, recipient: str, question: str) -> dict:
    top = subprocess.check_output(["git", "rev-parse", "--show-toplevel"], text=True).strip()
    if (await client.call_tool("whois", dict(project_key=top, agent_name=me))).is_error:
        await call(client, "create_agent", project_key=top, program="ask.py", model="none",
                   task_description="Asks questions", name_hint=me)
    message = dict(project_key=top, from_agent=me, to=[recipient], subject=question, body_md=question,
                   key=str(uuid.uuid4()), wait_reply_seconds=50)
    reply = None
    while not reply:  # With the same key, the message is sent once. The later calls only wait.
        reply = (await call(client, "send_message", **message)).get("reply")
    await call(client, "check_my_messages", project_key=top, agent_name=me, message_id=reply["id"], mark_read=True)
    return reply


async def main(me: str, recipient: str, question: str) -> None:
    # The SDK passes only a few variables to the program, so an MCP_MAIL_STORE of yours would be lost without env.
    mailtree = StdioServerParameters(command="mailtree", args=["stdio"], env=dict(os.environ))
    async with Client(mailtree) as client:
        try:
            reply = await ask(client, me, recipient, question)
            output, status = f"{reply['from']}: {reply['body_md']}", 0
        except Refused as refusal:
            output, status = str(refusal), 1
    print(output)
    sys.exit(status)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
