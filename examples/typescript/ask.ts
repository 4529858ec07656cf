// Ask another agent a question over MCP, wait for the answer, and print it.
//
// Usage: node ask.ts ME AGENT QUESTION
import { execFileSync } from "node:child_process";
import { randomUUID } from "node:crypto";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";

interface Reply { id: string; from: string; body_md: string }

const client = new Client({ name: "ask", version: "1.0.0" });

// call calls a tool and returns its answer. It throws the refusal if mailtree refuses the call.
async function call(name: string, args: Record<string, unknown>): Promise<Record<string, unknown>> {
  const result = await client.callTool({ name, arguments: args });
  if (result.isError) {
    throw new Error(`${name}: ${JSON.stringify(result.content)}`);
  }
  return result.structuredContent as Record<string, unknown>;
}

async function ask(me: string, recipient: string, question: string): Promise<Reply> {
  const project_key = execFileSync("git", ["rev-parse", "--show-toplevel"], { encoding: "utf8" }).trim();
  if ((await client.callTool({ name: "whois", arguments: { project_key, agent_name: me } })).isError) {
    await call("create_agent", {
      project_key, program: "ask.ts", model: "none", task_description: "Asks questions", name_hint: me,
    });
  }
  const message = {
    project_key, from_agent: me, to: [recipient], subject: question, body_md: question, key: randomUUID(), wait_reply_seconds: 50,
  };
  let reply: Reply | undefined;
  while (!reply) { // With the same key, the message is sent once. The later calls only wait.
    reply = (await call("send_message", message)).reply as Reply | undefined;
  }
  await call("check_my_messages", { project_key, agent_name: me, message_id: reply.id, mark_read: true });
  return reply;
}

const [me, recipient, question] = process.argv.slice(2);
// The SDK passes only a few variables to the program, so an MCP_MAIL_STORE of yours would be lost without env.
const env = process.env as Record<string, string>;
await client.connect(new StdioClientTransport({ command: "mailtree", args: ["stdio"], env }));
try {
  const reply = await ask(me, recipient, question);
  console.log(`${reply.from}: ${reply.body_md}`);
} finally {
  await client.close();
}
