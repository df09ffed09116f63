// Written by `locus-memory plug opencode`; `--remove` deletes it.
// What it answers to: https://opencode.ai/docs/plugins, read on 2026-11-28, version 1.18.
import { spawn } from "node:child_process"

const COMMAND = []
const LATEST = 200

// What the command reads of a message: the outputs and images of its tools may be large.
const words = ({ info, parts }) => ({
  timestamp: info.time ? new Date(info.time.created).toISOString() : null,
  info: { id: info.id, role: info.role },
  parts: parts.filter((part) => part.type === "text" && !part.synthetic).map(({ type, text }) => ({ type, text })),
})

// Resolves to what the command shows; to nothing, whatever fails.
const ask = (name, session, cwd, more) =>
  new Promise((resolve) => {
    const event = { hook_event_name: name, session_id: session, cwd, ...more }
    const child = spawn(COMMAND[0], COMMAND.slice(1), { stdio: ["pipe", "pipe", "ignore"] })
    let answer = ""
    child.stdout.on("data", (part) => (answer += part))
    child.on("error", () => resolve(""))
    child.on("close", () => {
      try {
        resolve(JSON.parse(answer).hookSpecificOutput.additionalContext ?? "")
      } catch {
        resolve("")
      }
    })
    child.stdin.on("error", () => {})
    child.stdin.end(JSON.stringify(event))
  })

export const LocusMemory = async ({ client, directory }) => {
  const known = new Map()
  return {
    "experimental.chat.system.transform": async (input, output) => {
      const session = input.sessionID
      if (!session) return
      if (!known.has(session)) known.set(session, ask("session.start", session, directory, {}))
      const text = await known.get(session)
      if (text) output.system.push(text)
    },
    "chat.message": async (input, output) => {
      const own = output.parts.filter((part) => part.type === "text" && !part.synthetic)
      const prompt = own.map((part) => part.text).join("\n")
      const text = await ask("chat.message", input.sessionID, directory, { prompt })
      if (!text) return
      const id = `prt_${crypto.randomUUID().replaceAll("-", "")}`
      const messageID = output.message.id
      output.parts.push({ id, sessionID: input.sessionID, messageID, type: "text", text, synthetic: true })
    },
    event: async ({ event }) => {
      if (event.type !== "session.idle") return
      const session = event.properties.sessionID
      const { data } = await client.session.messages({ path: { id: session } })
      await ask("session.idle", session, directory, { messages: (data ?? []).slice(-LATEST).map(words) })
    },
  }
}
