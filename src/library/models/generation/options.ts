import { TroupeError } from "../../../errors/index.ts";

/** A token that {@link generate} has chosen. */
export interface WrittenToken {
  /** Index of the prompt, and of the sample among the prompt's. */
  readonly prompt: number;
  readonly sample: number;
  readonly token: number;
  /** In nats, by the model's own logits: before temperature, restriction and penalty. */
  readonly logProb: number;
}

/** Text to tokens and back. */
export interface TextCodec {
  encode(text: string): Iterable<number>;
  decode(tokens: Iterable<number>): string;
}

/** Options of {@link generate}. */
export interface GenerateOptions {
  /** Texts for each prompt. Default: 1. */
  readonly samples?: number;
  /** Maximum number of tokens to add. */
  readonly maxNewTokens: number;
  /** Divides the logits; 0 takes the most likely token. Default: 1. */
  readonly temperature?: number;
  /** Samples only from the k most likely tokens. Default: all. */
  readonly topK?: number;
  /** Samples only from the most likely tokens that together reach this probability. Default: 1, all of them. */
  readonly topP?: number;
  /** Above 1, tokens that occur in the text become less likely (Keskar et al. 2019 §4.1). Default: 1. */
  readonly repetitionPenalty?: number;
  /** Seed: the draw of token n of a sample is a pure function of (seed, prompt, sample, n). Default: 0. */
  readonly seed?: number;
  /** The number of the first prompt, for draws: prompts that several processes share have the texts of one. Default: 0. */
  readonly firstPrompt?: number;
  /** Maximum number of texts that are written at a time: the next begins when one ends. Default: 256. */
  readonly slots?: number;
  /** Number of beams, without sampling; the likeliest text is returned. Default: 1, no beam search. */
  readonly numBeams?: number;
  /** Beam search divides the sum of log-probabilities by (tokens added) ^ this. Default: 1. */
  readonly lengthPenalty?: number;
  /** When beam search stops, as transformers' `early_stopping`. Default: false. */
  readonly earlyStopping?: boolean | "never";
  /** Tokens that end a text; they are kept. Default: the model's `eos_token_id`. */
  readonly stopTokens?: readonly number[];
  /** Texts that end a text when they appear in it; needs a tokenizer. Default: none. */
  readonly stopTexts?: readonly string[];
  /** Encodes prompts that are strings, and decodes what is written. Default: none. */
  readonly tokenizer?: TextCodec;
  /** Receives each token as it is chosen. Default: none does. Not with beams. */
  readonly onToken?: (written: WrittenToken) => void;
  /** Token before shorter prompts, which is masked. Default: the model's `pad_token_id`, or 0. */
  readonly padToken?: number;
  /** Encoder-decoders: the first generated token, and the last one if a text reaches its maximum. Default: none is forced. */
  readonly forcedFirstToken?: number;
  readonly forcedLastToken?: number;
}

/** All options with their values. */
export type Settled = Required<Omit<GenerateOptions, Absent>> & Pick<GenerateOptions, Absent>;

type Absent = "forcedFirstToken" | "forcedLastToken" | "tokenizer" | "onToken";

/**
 * @param tokens - special tokens of the model's config.json
 * @throws {TroupeError} `GENERATE_OPTION`
 */
export function settle(
  prompts: readonly (string | readonly number[])[],
  options: GenerateOptions,
  tokens: Readonly<Record<string, unknown>>,
): Settled {
  const { eos_token_id: end, pad_token_id: pad } = tokens;
  const settled: Settled = {
    maxNewTokens: options.maxNewTokens,
    samples: 1,
    temperature: 1,
    topK: Number.POSITIVE_INFINITY,
    topP: 1,
    repetitionPenalty: 1,
    seed: 0,
    firstPrompt: 0,
    slots: 256,
    numBeams: 1,
    lengthPenalty: 1,
    earlyStopping: false,
    stopTokens: [end ?? []].flat().filter((token): token is number => typeof token === "number"),
    stopTexts: [],
    padToken: typeof pad === "number" ? pad : 0,
    ...Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined)),
  };
  check(prompts, settled);
  return settled;
}

/** @throws {TroupeError} `GENERATE_OPTION`, whatever the model */
export function checkGenerateOptions(
  prompts: readonly (string | readonly number[])[],
  options: GenerateOptions,
): void {
  settle(prompts, options, {});
}

function check(prompts: readonly (string | readonly number[])[], options: Settled): void {
  const refuse = (expected: string, got: unknown): never => {
    throw new TroupeError("GENERATE_OPTION", { where: "generate", expected, got: `${got}`, fields: { got } });
  };
  const { maxNewTokens, temperature, topK, topP, repetitionPenalty, seed, numBeams, lengthPenalty } = options;
  const { samples, slots, stopTokens, stopTexts } = options;
  const empty = prompts.findIndex((prompt) => prompt.length === 0);
  if (prompts.length === 0) refuse("at least one prompt", 0);
  if (empty >= 0) refuse("prompts of at least one token", `none in prompt ${empty}`);
  for (const [name, count] of Object.entries({ samples, slots }))
    if (!(Number.isSafeInteger(count) && count >= 1)) refuse(`${name} to be a whole number ≥ 1`, count);
  for (const [name, list] of Object.entries({ stopTokens, stopTexts }))
    if (!Array.isArray(list)) refuse(`${name} to be a list`, JSON.stringify(list));
  if (stopTexts.includes("")) refuse("stopTexts of at least one character", "an empty one");
  if (!Number.isSafeInteger(maxNewTokens) || maxNewTokens < 0)
    refuse("maxNewTokens to be a whole number ≥ 0", maxNewTokens);
  if (!(temperature >= 0 && Number.isFinite(temperature))) refuse("temperature to be ≥ 0", temperature);
  if (!(topK >= 1)) refuse("topK to be ≥ 1", topK);
  if (!(topP > 0 && topP <= 1)) refuse("topP to be above 0 and at most 1", topP);
  if (!(repetitionPenalty > 0 && Number.isFinite(repetitionPenalty)))
    refuse("repetitionPenalty to be above 0", repetitionPenalty);
  if (!Number.isSafeInteger(seed)) refuse("seed to be a whole number", seed);
  if (!(Number.isSafeInteger(numBeams) && numBeams >= 1))
    refuse("numBeams to be a whole number ≥ 1", numBeams);
  if (!Number.isFinite(lengthPenalty)) refuse("lengthPenalty to be finite", lengthPenalty);
  if (numBeams > 1 && samples > 1) refuse("one sample with numBeams", samples);
  if (numBeams > 1 && options.onToken !== undefined)
    refuse("no onToken with numBeams, which chooses late", "one");
  const drawing = ["temperature", "topK", "topP"] as const;
  const drawn = drawing.find(
    (name) => ({ temperature: 1, topK: Number.POSITIVE_INFINITY, topP: 1 })[name] !== options[name],
  );
  if (numBeams > 1 && drawn !== undefined && options[drawn] !== 0)
    refuse(`no ${drawn} with numBeams, which does not sample`, options[drawn]);
}

/** The end, padding and forced tokens of a folder's config.json, overridden by generation_config.json. */
export function specialTokensOf(
  config: Readonly<Record<string, unknown>>,
  generation: Readonly<Record<string, unknown>> = {},
): Required<Pick<GenerateOptions, "stopTokens">> &
  Pick<GenerateOptions, "padToken" | "forcedFirstToken" | "forcedLastToken"> {
  const idsOf = (name: string) =>
    [generation[name] ?? config[name] ?? []].flat().filter((id): id is number => typeof id === "number");
  const [padToken] = idsOf("pad_token_id");
  const [forcedFirstToken] = idsOf("forced_bos_token_id");
  const [forcedLastToken] = idsOf("forced_eos_token_id");
  return {
    stopTokens: idsOf("eos_token_id"),
    ...(padToken !== undefined && { padToken }),
    ...(forcedFirstToken !== undefined && { forcedFirstToken }),
    ...(forcedLastToken !== undefined && { forcedLastToken }),
  };
}
