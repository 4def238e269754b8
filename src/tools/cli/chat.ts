import { createInterface } from "node:readline/promises";
import { type Command, Option } from "commander";
import { setNumThreads } from "../../compute/tensor/index.ts";
import { type ChatMessage, ChatTemplate, loadTokenizer, type Tokenizer } from "../../library/data/index.ts";
import * as models from "../../library/models/index.ts";
import { number, print, usage } from "./flags.ts";
import { type WritingModel, withWritingModel } from "./model-folder.ts";

interface ChatFlags {
  readonly system?: string;
  readonly tokenizer?: string;
  readonly base?: string;
  readonly maxNewTokens: number;
  readonly temperature: number;
  readonly topP?: number;
  readonly seed?: number;
  readonly threads?: number;
}

/** Adds `troupe chat FOLDER`. */
export function addChatCommand(program: Command): void {
  const command = program
    .command("chat")
    .description(
      "talk to a causal language model: each line of the input is a message, answers appear as they are written",
    )
    .argument("<folder>", "Hugging Face folder with a tokenizer that has a chat template, or an adapter")
    .option("--system <text>", "system message before the first one")
    .option("--tokenizer <path>", "folder with tokenizer and chat template, instead of the model's")
    .option(
      "--base <folder>",
      "base model of an adapter, instead of the one that its adapter_config.json names",
    );
  const value = (flag: string, text: string, otherwise?: number) =>
    command.addOption(new Option(flag, text).argParser(number).default(otherwise));
  value("--max-new-tokens <n>", "most tokens of an answer", 256);
  value("--temperature <t>", "0 takes the most likely token", 0);
  value("--top-p <p>", "draw from the most likely tokens that reach this probability together");
  value("--seed <n>", "seed of the draws");
  value("--threads <n>", "threads to compute with (default: one for each core)");
  command.action(async (folder: string, flags: ChatFlags) => {
    if (flags.threads !== undefined) setNumThreads(flags.threads);
    await withWritingModel(folder, flags.base, (opened) => talk(opened, flags));
  });
}

async function talk(opened: WritingModel, flags: ChatFlags): Promise<void> {
  if (opened.task !== "causal_lm") throw usage("a causal language model", opened.task, "it continues a chat");
  const place = flags.tokenizer ?? opened.base;
  const speaker = new Speaker(opened, await loadTokenizer(place), await ChatTemplate.load(place), flags);
  const isTyped = process.stdin.isTTY === true;
  using input = createInterface({
    input: process.stdin,
    ...(isTyped && { output: process.stdout, prompt: "> " }),
  });
  if (isTyped) input.prompt();
  for await (const line of input) {
    if (line.trim() !== "") speaker.answer(line);
    if (isTyped) input.prompt();
  }
  if (isTyped) print("");
}

/** Answers messages, with those before them in view. */
class Speaker {
  readonly #opened: WritingModel;
  readonly #tokenizer: Tokenizer;
  readonly #template: ChatTemplate;
  readonly #options: models.GenerateOptions;
  readonly #system: readonly ChatMessage[];
  #messages: ChatMessage[] = [];

  constructor(opened: WritingModel, tokenizer: Tokenizer, template: ChatTemplate, flags: ChatFlags) {
    const { maxNewTokens, temperature, topP, seed } = flags;
    const special = models.specialTokensOf(opened.config, opened.generationConfig);
    const end = tokenizer.encode(template.end.trim());
    this.#opened = opened;
    this.#tokenizer = tokenizer;
    this.#template = template;
    this.#system = flags.system === undefined ? [] : [{ role: "system", content: flags.system }];
    this.#options = {
      ...special,
      ...{ maxNewTokens, temperature },
      ...(topP !== undefined && { topP }),
      ...(seed !== undefined && { seed }),
      // A token of its own, such as <|im_end|>, and not a word that an answer may have too.
      stopTokens: end.length === 1 ? [...special.stopTokens, ...end] : special.stopTokens,
    };
  }

  /** Prints the answer to a message while it is written. */
  answer(content: string): void {
    this.#messages.push({ role: "user", content });
    const written: number[] = [];
    let printed = "";
    const { stopTokens = [] } = this.#options;
    const onToken = ({ token }: { readonly token: number }) => {
      if (stopTokens.includes(token)) return;
      written.push(token);
      const text = this.#tokenizer.decode(written);
      // A character may still lack bytes.
      if (text.endsWith("\uFFFD")) return;
      process.stdout.write(text.slice(printed.length));
      printed = text;
    };
    models.generate(this.#opened.model, this.#prompt(), { ...this.#options, onToken });
    print("");
    this.#messages.push({ role: "assistant", content: this.#tokenizer.decode(written) });
  }

  /** Forgets the oldest messages where the model's context is too short for all. */
  #prompt(): number[] {
    const { maxPositions } = this.#opened.model as models.LanguageModel;
    for (;;) {
      const messages = [...this.#system, ...this.#messages];
      const tokens = [...this.#tokenizer.encode(this.#template.render(messages, { forAnswer: true }))];
      if (tokens.length + this.#options.maxNewTokens <= maxPositions || this.#messages.length === 1)
        return tokens;
      this.#messages = this.#messages.slice(2);
    }
  }
}
