import { existsSync } from "node:fs";
import { join } from "node:path";
import { type Command, Option } from "commander";
import { setNumThreads } from "../../compute/tensor/index.ts";
import { openCheckpoint } from "../../library/checkpoint/index.ts";
import {
  HuggingFaceTokenizer,
  joinTexts,
  loadTokenizer,
  type Tokenizer,
  type TokenizerSpec,
  tokenizerFromSpec,
} from "../../library/data/index.ts";
import * as models from "../../library/models/index.ts";
import { number, print } from "./flags.ts";
import { withWritingModel } from "./model-folder.ts";

/** Options of generation have its names. */
interface GenerateFlags extends Omit<models.GenerateOptions, "tokenizer"> {
  readonly prompt: readonly string[];
  readonly tokens: boolean;
  readonly tokenizer?: string;
  readonly base?: string;
  readonly beams?: number;
  readonly threads?: number;
}

const stopping = { true: true, false: false, never: "never" } as const;

/** Adds `troupe generate FOLDER`. */
export function addGenerateCommand(program: Command): void {
  const command = program
    .command("generate")
    .description(
      "generate text from prompts, with the causal or encoder-decoder model of a Hugging Face folder",
    )
    .argument(
      "<folder>",
      "a run's folder, for its newest checkpoint, or one of its checkpoints; a Hugging Face folder with config.json, weights and tokenizer; or an adapter: what a run with a delta saves, or peft",
    )
    .requiredOption("--prompt <text...>", "one or several prompts")
    .option("--tokens", "read prompts and print results as token ids, separated by commas", false)
    .option("--tokenizer <path>", "tokenizer.json, or a folder with one, instead of the model's")
    .option(
      "--base <folder>",
      "base model of an adapter, instead of the one that its adapter_config.json names",
    );
  const value = (flag: string, text: string, otherwise?: number) =>
    command.addOption(new Option(flag, text).argParser(number).default(otherwise));
  value("--max-new-tokens <n>", "most tokens to add", 50);
  value(
    "--temperature <t>",
    "0 takes the most likely token (default: 0, or 1 with --top-k, --top-p, --seed or --beams)",
  );
  value("--top-k <n>", "draw from the n most likely tokens");
  value("--top-p <p>", "draw from the most likely tokens that reach this probability together");
  value("--repetition-penalty <x>", "above 1: tokens of the text so far become less likely");
  value("--seed <n>", "seed of the draws: the same seed gives the same text");
  value("--beams <n>", "follow n texts at once and print the likeliest");
  value("--length-penalty <x>", "with --beams: above 0 favours long texts");
  value("--threads <n>", "threads to compute with (default: one for each core)");
  command
    .addOption(
      new Option("--early-stopping <when>", "with --beams: stop once n texts have ended").choices(
        Object.keys(stopping),
      ),
    )
    .action(run);

  async function run(folder: string, flags: GenerateFlags): Promise<void> {
    if (flags.threads !== undefined) setNumThreads(flags.threads);
    for (const text of await write(folder, flags)) print(text);
  }
}

async function write(path: string, flags: GenerateFlags): Promise<string[]> {
  return withWritingModel(path, flags.base, async ({ model, task, config, generationConfig, base }) => {
    const tokenizer = flags.tokens ? undefined : await tokenizerOf(flags.tokenizer ?? base);
    const encode = task === "seq2seq_lm" ? encodeSource : encodeBegun;
    const prompts = flags.prompt.map((prompt) =>
      tokenizer === undefined
        ? prompt.split(",").map((token) => number(token))
        : encode(prompt, tokenizer, config),
    );
    const options = { ...models.specialTokensOf(config, generationConfig), ...optionsOf(flags) };
    const texts = models.generate(model, prompts, options);
    return texts.map((text, row) => {
      const written = text.slice(task === "seq2seq_lm" ? 1 : (prompts[row]?.length ?? 0));
      if (tokenizer === undefined) return written.join(",");
      const bare = written.filter((token) => !options.stopTokens.includes(token));
      return task === "seq2seq_lm"
        ? tokenizer.decode(bare)
        : tokenizer.decode([...tokenizer.encode(flags.prompt[row] ?? ""), ...bare]);
    });
  });
}

/** The tokenizer with which a run wrote the checkpoint, if the folder is one that has it; else that of the folder's files. */
async function tokenizerOf(path: string): Promise<Tokenizer> {
  if (!existsSync(join(path, "manifest.json"))) return loadTokenizer(path);
  await using checkpoint = await openCheckpoint(path);
  const spec = checkpoint.state.tokenizer as unknown as TokenizerSpec | null;
  return spec === null ? loadTokenizer(path) : tokenizerFromSpec(spec);
}

/** Encodes a text for a decoder to continue: after the tokenizer's own mark, without one of its end. */
function encodeBegun(prompt: string, tokenizer: Tokenizer): readonly number[] {
  if (!(tokenizer instanceof HuggingFaceTokenizer)) return [...tokenizer.encode(prompt)];
  const { ids, sources } = joinTexts(tokenizer, [prompt]);
  return ids.slice(0, sources.lastIndexOf(0) + 1);
}

/** Encodes a text for an encoder: between the tokenizer's own marks, with the model's end at the latest. */
function encodeSource(
  prompt: string,
  tokenizer: Tokenizer,
  { eos_token_id: end }: Readonly<Record<string, unknown>>,
): readonly number[] {
  const ids =
    tokenizer instanceof HuggingFaceTokenizer
      ? joinTexts(tokenizer, [prompt]).ids
      : [...tokenizer.encode(prompt)];
  return typeof end !== "number" || ids.at(-1) === end ? ids : [...ids, end];
}

function optionsOf({
  beams,
  prompt: _,
  tokens: __,
  tokenizer: ___,
  base: ____,
  threads: _____,
  earlyStopping,
  ...flags
}: GenerateFlags): models.GenerateOptions {
  const isDrawn = [flags.temperature, flags.topK, flags.topP, flags.seed].some(
    (value) => value !== undefined,
  );
  const temperature = flags.temperature ?? (isDrawn || beams !== undefined ? 1 : 0);
  return {
    ...flags,
    temperature,
    ...(beams !== undefined && { numBeams: beams }),
    ...(earlyStopping !== undefined && {
      earlyStopping: stopping[String(earlyStopping) as keyof typeof stopping],
    }),
  };
}
