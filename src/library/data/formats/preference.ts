import type { JsonRecord } from "./json-lines.ts";
import { exampleError } from "./refusal.ts";

/** A message of a chat. */
export interface PreferenceMessage {
  readonly role: string;
  readonly content: string;
}

/** A prompt with a preferred answer and another. */
export interface Preference {
  /** The messages before the answers. */
  readonly prompt: readonly PreferenceMessage[];
  readonly chosen: string;
  readonly rejected: string;
}

/**
 * Reads a pair of answers as people publish them: `chosen` and `rejected` are answers to `prompt` (or `question`, `instruction`,
 * `input`); or chats in messages with `role` and `content`, with the prompt or without; or complete dialogues in the text of
 * Anthropic's HH, with `Human:` and `Assistant:`. A `system` text precedes the prompt.
 * @param place - names the record in errors
 * @throws {TroupeError} `DATA_EXAMPLE` for a record without both, an answer that is not the assistant's, or chats that differ before
 *   the last message
 */
export function preferenceOf(record: JsonRecord, place: string): Preference {
  const given = [record.prompt, record.question, record.instruction, record.input].find(
    (each) => each !== undefined && each !== null,
  );
  const before = given === undefined ? [] : messagesOf(given, "user", place);
  const answers = [record.chosen, record.rejected].map((answer, index) => {
    const name = index === 0 ? "chosen" : "rejected";
    if (answer === undefined || answer === null)
      throw exampleError(place, "chosen and rejected answers", Object.keys(record).join(", ") || "none");
    const messages = messagesOf(answer, "assistant", place);
    const last = messages.at(-1);
    if (last?.role !== "assistant")
      throw exampleError(place, `${name} to end with the assistant's answer`, last?.role ?? "nothing");
    return { begin: messages.slice(0, -1), answer: last.content };
  });
  const [chosen, rejected] = answers as [(typeof answers)[0], (typeof answers)[0]];
  if (JSON.stringify(chosen.begin) !== JSON.stringify(rejected.begin))
    throw exampleError(place, "chosen and rejected that differ in the last answer alone", "others before it");
  // A chat that repeats its prompt has it already.
  const prompt = chosen.begin.length > 0 ? chosen.begin : before;
  if (prompt.length === 0) throw exampleError(place, "a prompt", "none");
  const system = typeof record.system === "string" && record.system !== "" && prompt[0]?.role !== "system";
  return {
    prompt: system ? [{ role: "system", content: record.system as string }, ...prompt] : prompt,
    chosen: chosen.answer,
    rejected: rejected.answer,
  };
}

/** Messages, a dialogue in one text, or a text as one message of `role`. */
function messagesOf(value: unknown, role: string, place: string): readonly PreferenceMessage[] {
  if (typeof value === "string") return dialogue(value) ?? [{ role, content: value }];
  const isMessage = (each: unknown): each is PreferenceMessage => {
    const { role: of, content } = (each ?? {}) as Partial<PreferenceMessage>;
    return typeof of === "string" && typeof content === "string";
  };
  if (Array.isArray(value) && value.length > 0 && value.every(isMessage))
    return value.map((message: PreferenceMessage) => ({ role: message.role, content: message.content }));
  throw exampleError(place, "a text or messages with role and content", JSON.stringify(value)?.slice(0, 60));
}

/** The messages of a dialogue in Anthropic's format; undefined for another text. */
function dialogue(text: string): PreferenceMessage[] | undefined {
  if (!/^\s*Human: /.test(text)) return undefined;
  const parts = text
    .trim()
    .split(/(?:^|\n\n)(Human|Assistant):/)
    .slice(1);
  return parts.flatMap((part, index) =>
    index % 2 === 0
      ? [{ role: part === "Human" ? "user" : "assistant", content: (parts[index + 1] ?? "").trim() }]
      : [],
  );
}
