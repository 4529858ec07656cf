// mailtree: `mailtree setup opencode` writes this file, and `--remove` deletes it.
// It reports a session's events to `mailtree hook opencode`, and applies the answers.
import { spawn } from "node:child_process"

const command = ["mailtree", "hook", "opencode", "--plugin"]

// In a plugin, these are the MCP entry, and the text for the model if mailtree is not on the PATH.
const entry = {"command":["mailtree", "stdio"],"enabled":true,"type":"local"}
const missing = "The mailtree plugin is inactive because mailtree is not on the PATH. To install mailtree, see the mailtree README"

// ask sends an event to the hook and returns the answer: {tell, deny, warn, agent}, each optional. If anything fails,
// the answer is empty. With --wait, the answer comes only when mail arrives, which may be never.
const ask = (event, flags = []) =>
  new Promise((resolve) => {
    const timeout = flags.includes("--wait") ? undefined : 5000
    const child = spawn(command[0], [...command.slice(1), ...flags], { stdio: ["pipe", "pipe", "ignore"], timeout })
    let out = ""
    child.stdout.on("data", (data) => (out += data))
    child.stdin.on("error", () => {})
    child.on("error", () => resolve({}))
    child.on("close", () => {
      try {
        resolve(JSON.parse(out))
      } catch {
        resolve({})
      }
    })
    child.stdin.end(JSON.stringify(event))
  })

// newID returns an id for a message ("msg") or a part ("prt"). The id sorts after the ids that opencode has created, so
// that the user's own text comes first.
const newID = (kind) => {
  const time = BigInt.asUintN(48, BigInt(Date.now()) * 0x1000n + 0xfffn)
  return kind + "_" + time.toString(16).padStart(12, "0") + Math.random().toString(36).slice(2, 16).padEnd(14, "0")
}

export const Mailtree = async ({ client, directory }) => {
  const started = new Set() // sessions that were reported to the hook
  const parents = new Map() // a subagent's session: the session that started it, whose agent it acts as
  const agents = new Map() // session: the name of its agent
  const warnings = new Map() // call of a tool that changes files: the warning about the files for the model

  const main = (session) => (parents.has(session) ? main(parents.get(session)) : session)
  const tell = async (name, session, more) => {
    const event = { hook_event_name: name, session_id: main(session), cwd: directory, ...more }
    if (parents.has(session)) event.agent_id = session // a subagent is told nothing
    const answer = await ask(event)
    if (answer.agent) agents.set(main(session), answer.agent)
    return answer
  }
  const begin = async (session) => {
    if (started.has(session)) return {}
    started.add(session)
    if (missing && !Bun.which(command[0])) return { tell: missing }
    return tell("SessionStart", session, { source: "startup" })
  }

  // When a turn fails, opencode reports the session as idle twice. A prompt that is sent between the two reports becomes
  // a message that no turn answers. So if the session is idle again before a prompt has made it busy, the prompt is sent
  // once more, with the same ids.
  const unanswered = new Map() // session: the message
  const say = (session, body) => client.session.promptAsync({ path: { id: session }, body })
  const prompt = (session, text) => {
    const body = { messageID: newID("msg"), parts: [{ id: newID("prt"), type: "text", text }] }
    unanswered.set(session, body)
    return say(session, body)
  }
  const wait = async (session) => {
    if (parents.has(session)) return
    const { tell: news } = await ask({ hook_event_name: "Stop", session_id: session, cwd: directory }, ["--wait"])
    if (news) await prompt(session, news).catch(() => {})
  }

  return {
    config: async (config) => {
      if (entry) config.mcp = { mail: entry, ...config.mcp }
    },
    "chat.message": async ({ sessionID, messageID }, { message, parts }) => {
      for (const answer of [await begin(sessionID), await tell("UserPromptSubmit", sessionID)]) {
        if (!answer.tell) continue
        parts.push({ id: newID("prt"), sessionID, messageID: messageID ?? message.id, type: "text", text: answer.tell, synthetic: true })
      }
    },
    "tool.execute.before": async ({ tool, sessionID, callID }, { args }) => {
      if (!["edit", "write", "patch", "apply_patch", "multiedit"].includes(tool)) return
      const answer = await tell("PreToolUse", sessionID, { tool_name: tool, tool_input: args })
      if (answer.deny) throw new Error(answer.deny)
      if (answer.warn) warnings.set(callID, answer.warn)
    },
    "tool.execute.after": async ({ tool, sessionID, callID, args }, result) => {
      const text = typeof result.output === "string"
      if (!text && !Array.isArray(result.content)) return // no text can be added, so the answer would be lost
      const answer = await tell("PostToolUse", sessionID, { tool_name: tool, tool_input: args })
      const said = [warnings.get(callID), answer.tell].filter(Boolean).join("\n\n")
      warnings.delete(callID)
      if (!said) return
      if (text) result.output += "\n\n" + said
      else result.content.push({ type: "text", text: said }) // the result of an MCP server's tool
    },
    "shell.env": async ({ sessionID }, { env }) => {
      if (agents.has(main(sessionID))) env.AGENT_NAME = agents.get(main(sessionID))
    },
    event: async ({ event }) => {
      const session = event.properties?.sessionID ?? event.properties?.info?.id
      if (event.type === "session.created" && event.properties.info.parentID) parents.set(session, event.properties.info.parentID)
      if (event.type === "session.compacted") await tell("SessionStart", session, { source: "compact" })
      if (event.type === "session.deleted") await tell("SessionEnd", session)
      if (event.type === "session.status" && event.properties.status.type === "busy") unanswered.delete(session)
      if (event.type === "session.idle" && started.has(session)) {
        const body = unanswered.get(session)
        unanswered.delete(session)
        if (body) return say(session, body)
        const { tell: news } = await tell("Stop", session)
        if (news) await prompt(session, news)
        else wait(session) // the next waiting hook ends this one
      }
      if (event.type === "server.instance.disposed") await Promise.all([...started].map((s) => tell("SessionEnd", s)))
    },
  }
}
