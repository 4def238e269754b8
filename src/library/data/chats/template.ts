import { join } from "node:path";
import vm from "node:vm";
import type { Template } from "@huggingface/jinja";
import { TroupeError } from "../../../errors/index.ts";
import { isThere, maxFileBytes, parseBoundedJson, readBoundedText } from "../../../errors/untrusted/index.ts";
import { exampleError, type JsonRecord } from "../formats/index.ts";
import { noteFile } from "../noted-files.ts";
import { HuggingFaceTokenizer, type Span, type Tokenizer } from "../tokenizers/index.ts";
import type { Chat, ChatMessage } from "./chat.ts";
import { replaceStripCalls, STRIPPED, stripped } from "./strip-calls.ts";

/** A chat as tokens. */
export interface ChatTokens {
  readonly ids: readonly number[];
  /** Whether each token is of an answer that is learned. */
  readonly learned: readonly boolean[];
}

/** The special tokens that templates name. */
const specials = ["bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token"];

/** Characters that no text has (Unicode reserves them for programs), at the begin and the end of an answer. */
const [BEGIN, END] = ["\uFDD0", "\uFDD1"];

/** The longest template, in UTF-16 units; the longest published ones have 20,000. */
const MAX_TEMPLATE = 1 << 18;

/** How long a template may take for a chat: published ones need some milliseconds. */
const MOST_MS = 5_000;

/** A script that can be stopped, whatever it calls. */
const calling = new vm.Script("body()");
let room: { body?: () => unknown } | undefined;

/** Calls `body`, unless it takes longer than a template may. @throws {Error} `ERR_SCRIPT_EXECUTION_TIMEOUT` */
function inTime<T>(body: () => T): T {
  room ??= vm.createContext({}) as NonNullable<typeof room>;
  room.body = body;
  return calling.runInContext(room, { timeout: MOST_MS }) as T;
}

/** Writes chats as the text that a model is trained on: a Jinja template, as tokenizers are published with. */
export class ChatTemplate {
  readonly #template: Template;
  readonly #fields: JsonRecord;
  readonly #marksAnswers: boolean;

  private constructor(template: Template, fields: JsonRecord, marksAnswers: boolean) {
    this.#template = template;
    this.#fields = fields;
    this.#marksAnswers = marksAnswers;
  }

  /**
   * Loads the template of a tokenizer.
   * @param folder - with `chat_template.jinja`, or `chat_template` in `tokenizer_config.json`
   * @throws {TroupeError} `TOKENIZER_INVALID` if there is none, or it is no template
   */
  static async load(folder: string): Promise<ChatTemplate> {
    const config = await jsonAt(join(folder, "tokenizer_config.json"));
    const file = join(folder, "chat_template.jinja");
    const text = (await isThere(file)) ? await textAt(file) : defaultOf(config.chat_template);
    if (text === undefined)
      throw refusal(
        `a chat template in ${folder}`,
        "none",
        "chat_template.jinja, or chat_template in tokenizer_config.json",
      );
    return ChatTemplate.parse(text, {
      ...(await jsonAt(join(folder, "special_tokens_map.json"))),
      ...config,
    });
  }

  /**
   * Reads a template.
   * @param fields - of `tokenizer_config.json`: special tokens, texts or records with `content`
   * @throws {TroupeError} `TOKENIZER_INVALID` if it is no template
   */
  static async parse(text: string, fields: JsonRecord = {}): Promise<ChatTemplate> {
    const { Template } = await loadJinja();
    if (text.length > MAX_TEMPLATE)
      throw refusal(`a chat template of at most ${MAX_TEMPLATE} characters`, `${text.length}`);
    const named = specials.map((name) => [name, contentOf(fields[name])] as const);
    try {
      const template = inTime(() => new Template(withMarks(text)));
      replaceStripCalls(template);
      const tokens = Object.fromEntries(named.filter(([, token]) => token !== undefined));
      return new ChatTemplate(template, { ...tokens, [STRIPPED]: stripped }, generation.test(text));
    } catch (cause) {
      throw refusal(
        "a chat template that @huggingface/jinja can read",
        `"${(cause as Error).message}"`,
        undefined,
        cause,
      );
    }
  }

  /**
   * Writes messages as one text, which with `forAnswer` ends where an answer of the assistant begins.
   * @throws {TroupeError} `DATA_EXAMPLE` if the template refuses them
   */
  render(
    messages: readonly ChatMessage[],
    {
      forAnswer = false,
      tools,
    }: { readonly forAnswer?: boolean; readonly tools?: readonly unknown[] | undefined } = {},
  ): string {
    const marked = this.#inTime("messages", () => this.#marked(messages, forAnswer, tools, "messages"));
    return marked.replaceAll(marks, "");
  }

  /**
   * Encodes a chat, and marks the answers that are learned: what is between `{% generation %}` and `{% endgeneration %}` in a template that has
   * them, as in transformers; else all from where an answer begins to where the next message does.
   * @param place - names the chat in errors
   * @throws {TroupeError} `DATA_EXAMPLE` if the template refuses it, or writes a message in another way once others follow
   */
  encode({ messages, learned, tools }: Chat, tokenizer: Tokenizer, place: string): ChatTokens {
    if (JSON.stringify(messages).search(marks) >= 0)
      throw exampleError(place, "texts without U+FDD0 and U+FDD1", "some");
    const [text, answers] = this.#inTime(place, (): [string, Span[]] => {
      const marked = this.#marked(messages, false, tools, place);
      const written = marked.replaceAll(marks, "");
      return [
        written,
        this.#marksAnswers ? markedSpans(marked) : this.#answersIn(written, messages, tools, place),
      ];
    });
    // A template may mark an answer in several parts.
    if (!learned.includes(false)) return tokensOf(tokenizer, text, answers);
    if (answers.length !== learned.length)
      throw exampleError(
        place,
        `a template that marks each of ${learned.length} answers once`,
        answers.length,
      );
    return tokensOf(
      tokenizer,
      text,
      answers.filter((_, index) => learned[index]),
    );
  }

  /** The text that the template puts after an answer: "<|im_end|>\n". */
  get end(): string {
    const answer = "\u2042"; // in no template
    const text = this.render([
      { role: "user", content: "?" },
      { role: "assistant", content: answer },
    ]);
    return text.slice(text.lastIndexOf(answer) + 1);
  }

  /** The spans of answers, of templates that do not mark them. */
  #answersIn(text: string, messages: readonly ChatMessage[], tools: Chat["tools"], place: string): Span[] {
    return [...messages.entries()]
      .filter(([, { role }]) => role === "assistant")
      .map(([index]) => {
        const before = this.#marked(messages.slice(0, index), true, tools, place);
        const after = this.#marked(messages.slice(0, index + 1), false, tools, place);
        if (!(after.startsWith(before) && text.startsWith(after)))
          throw exampleError(
            place,
            "a template that writes each message in one way, whatever follows, or has {% generation %} around answers",
            `another text of message ${index + 1}`,
          );
        return [before.length, after.length] as const;
      });
  }

  #inTime<T>(place: string, body: () => T): T {
    try {
      return inTime(body);
    } catch (cause) {
      if ((cause as NodeJS.ErrnoException).code !== "ERR_SCRIPT_EXECUTION_TIMEOUT") throw cause;
      throw exampleError(
        place,
        `a chat that its template writes within ${MOST_MS / 1_000} s`,
        "none by then",
      );
    }
  }

  #marked(messages: readonly ChatMessage[], forAnswer: boolean, tools: Chat["tools"], place: string): string {
    // Templates tell what is not given from what is undefined.
    const given = { tools: tools ?? null, documents: null, messages, add_generation_prompt: forAnswer };
    try {
      return this.#template.render({ ...this.#fields, ...given });
    } catch (cause) {
      throw exampleError(place, "a chat that its template can write", `"${(cause as Error).message}"`);
    }
  }
}

const marks = /[\uFDD0\uFDD1]/g;
const generation = /\{%-?\s*generation\s*-?%\}/;

/** Replaces the tags around answers by marks in the text. As blocks they keep the white space around them as tags do. */
function withMarks(template: string): string {
  return template.replaceAll(
    /\{%(-?)\s*(end)?generation\s*(-?)%\}/g,
    (_, left: string, end: string | undefined, right: string) =>
      `{%${left} if true %}{{ '${end === undefined ? BEGIN : END}' }}{% endif ${right}%}`,
  );
}

/** The spans between marks, in the text without them. */
function markedSpans(marked: string): Span[] {
  return [...marked.matchAll(/\uFDD0([^\uFDD1]*)\uFDD1/g)].map(({ index, 1: answer = "" }, number) => {
    const begin = index - 2 * number;
    return [begin, begin + answer.length] as const;
  });
}

/** Encodes a text. A token is learned if any of it is in one of the spans. */
function tokensOf(tokenizer: Tokenizer, text: string, answers: readonly Span[]): ChatTokens {
  if (tokenizer instanceof HuggingFaceTokenizer) {
    const { ids, spans } = tokenizer.encodeWithSpans(text);
    let next = 0;
    const learned = spans.map(([begin, end]) => {
      while (next < answers.length && (answers[next]?.[1] ?? 0) <= begin) next++;
      return (answers[next]?.[0] ?? Number.POSITIVE_INFINITY) < end;
    });
    return { ids, learned };
  }
  // Tokenizers of bytes and characters encode any part by itself.
  const [ids, learned]: [number[], boolean[]] = [[], []];
  const add = (begin: number, end: number, isLearned: boolean) => {
    for (const id of tokenizer.encode(text.slice(begin, end))) {
      ids.push(id);
      learned.push(isLearned);
    }
  };
  let done = 0;
  for (const [begin, end] of answers) {
    add(done, begin, false);
    add(begin, end, true);
    done = end;
  }
  add(done, text.length, false);
  return { ids, learned };
}

/** The template itself, or the default one of several. */
function defaultOf(value: unknown): string | undefined {
  if (typeof value === "string") return value;
  if (!Array.isArray(value)) return undefined;
  const found = (value as readonly JsonRecord[]).find(({ name }) => name === "default");
  return typeof found?.template === "string" ? found.template : undefined;
}

function contentOf(token: unknown): string | undefined {
  if (typeof token === "string") return token;
  const content = (token as { readonly content?: unknown } | null | undefined)?.content;
  return typeof content === "string" ? content : undefined;
}

async function jsonAt(path: string): Promise<JsonRecord> {
  if (!(await isThere(path))) return {};
  return parseBoundedJson(await textAt(path)) as JsonRecord;
}

function textAt(path: string): Promise<string> {
  noteFile(path, { isHashed: true });
  return readBoundedText(path, maxFileBytes.tokenizer);
}

async function loadJinja(): Promise<typeof import("@huggingface/jinja")> {
  try {
    return await import("@huggingface/jinja");
  } catch (cause) {
    throw refusal(
      "the package @huggingface/jinja",
      `"${(cause as Error).message}"`,
      "npm install @huggingface/jinja",
      cause,
    );
  }
}

function refusal(expected: string, got: string, hint?: string, cause?: unknown): TroupeError {
  return new TroupeError("TOKENIZER_INVALID", { where: "chat template", expected, got, hint, cause });
}
