import { exampleError, type JsonRecord } from "../formats/index.ts";

/** A message of a chat; other fields than these, such as `tool_calls`, are the template's. Plain data. */
export type ChatMessage = {
  /** `system`, `user`, `assistant` or `tool`. */
  readonly role: string;
  /** A text, or the parts of one; absent in a message of tool calls alone. */
  readonly content?: unknown;
} & JsonRecord;

/** A chat to learn from. Plain data. */
export interface Chat {
  readonly messages: readonly ChatMessage[];
  /** Whether each of the assistant's messages is learned, in order. */
  readonly learned: readonly boolean[];
  /** Descriptions of tools for the template. */
  readonly tools?: readonly unknown[];
}

/** The roles of ShareGPT's names. */
const roles: Readonly<Record<string, string>> = {
  system: "system",
  human: "user",
  user: "user",
  gpt: "assistant",
  assistant: "assistant",
  chatgpt: "assistant",
  model: "assistant",
  tool: "tool",
  function: "tool",
  observation: "tool",
};

/**
 * Reads a chat from a record as datasets of chats are published: `messages` with `role` and `content`; `conversations` with `from` and
 * `value`, ShareGPT's; or `prompt` and `completion`, each a text or a list of messages. A `prompt` beside a list, without `completion`, is
 * ignored. The assistant's messages are learned, except those of
 * a prompt, and those with a `weight` of 0.
 * @param place - names file and position in errors
 * @throws {TroupeError} `DATA_EXAMPLE` naming the place
 */
export function chatIn(record: JsonRecord, place: string): Chat {
  const { messages, conversations, completion, tools } = record;
  const list = messages ?? conversations;
  // A table's rows have all of its columns, empty ones too. A prompt without a completion repeats the beginning of a list beside it.
  const repeats = completion == null && list != null;
  const prompt = repeats ? undefined : (record.prompt ?? undefined);
  const given = prompt === undefined ? [] : messagesIn(prompt, "user", `prompt of ${place}`);
  const rest =
    prompt === undefined
      ? messagesIn(list, "", place)
      : messagesIn(completion, "assistant", `completion of ${place}`);
  const all = [...given, ...rest];
  const answers = [...all.entries()].filter(([, { role }]) => role === "assistant");
  const learned = answers.map(([index, { weight }]) => index >= given.length && weight !== 0);
  if (!learned.includes(true))
    throw exampleError(place, "an answer of the assistant", `${all.length} messages`);
  return { messages: all, learned, ...(Array.isArray(tools) && { tools }) };
}

/** @param alone - the role of a text that is no list; empty if there must be a list */
function messagesIn(value: unknown, alone: string, place: string): readonly ChatMessage[] {
  if (alone !== "" && typeof value === "string") return [{ role: alone, content: value }];
  if (!Array.isArray(value) || value.length === 0) {
    const expected = alone === "" ? "messages, conversations, or prompt and completion" : "a text, or a list";
    throw exampleError(place, expected, value === undefined ? "none" : kindOf(value));
  }
  return value.map((message, index) => messageIn(message, `message ${index + 1} of ${place}`));
}

function messageIn(value: unknown, place: string): ChatMessage {
  if (typeof value !== "object" || value === null || Array.isArray(value))
    throw exampleError(place, "a role and a content", kindOf(value));
  const { from, value: said, ...fields } = value as JsonRecord;
  const { role = from, content = said } = fields;
  if (typeof role !== "string" || roles[role] === undefined)
    throw exampleError(place, `a role of ${Object.keys(roles).join(", ")}`, JSON.stringify(role) ?? "none");
  const isSaid = typeof content === "string" || Array.isArray(content);
  if (!isSaid && fields.tool_calls === undefined)
    throw exampleError(place, "a text as its content", kindOf(content));
  return { ...fields, role: roles[role], ...(isSaid && { content }) };
}

function kindOf(value: unknown): string {
  if (value === null || value === undefined) return "none";
  return Array.isArray(value) ? `a list of ${value.length}` : typeof value;
}
