import { TroupeError } from "../../../errors/index.ts";

/** How text is continued. */
export interface GenerateOptions {
  /** How many tokens are added at most. */
  readonly maxNewTokens: number;
  /** Divides the logits; 0 takes the most likely token. Default: 1. */
  readonly temperature?: number;
  /** Only the k most likely tokens are drawn from. Default: all. */
  readonly topK?: number;
  /** Only the most likely tokens are drawn from that together reach this probability. Default: 1, all of them. */
  readonly topP?: number;
  /** Above 1, tokens that stand in the text already are less likely (Keskar et al. 2019 §4.1). Default: 1. */
  readonly repetitionPenalty?: number;
  /** Token n of a row is drawn by a pure function of (seed, row, n). Default: 0. */
  readonly seed?: number;
  /** How many texts are pursued at once, of which the likeliest is kept; 1, none but one, unless told otherwise. Nothing is drawn. */
  readonly numBeams?: number;
  /** Of beams: the sum of the log-probabilities is divided by (tokens added) ^ this. Default: 1. */
  readonly lengthPenalty?: number;
  /** Of beams, as transformers' `early_stopping`. Default: false. */
  readonly earlyStopping?: boolean | "never";
  /** A text ends with any of these, which it keeps. Default: the model's own `eos_token_id`. */
  readonly stopTokens?: readonly number[];
  /** What stands before shorter prompts, and is not seen. Default: the model's own `pad_token_id`, or 0. */
  readonly padToken?: number;
  /** Of encoder-decoders: the first token that is written, and the last one where a text reaches its most. Default: drawn. */
  readonly forcedFirstToken?: number;
  readonly forcedLastToken?: number;
}

/** Every option with its value. */
export type Settled = Required<Omit<GenerateOptions, "forcedFirstToken" | "forcedLastToken">> &
  Pick<GenerateOptions, "forcedFirstToken" | "forcedLastToken">;

/**
 * @param tokens - what a model's config.json says of its tokens
 * @throws {TroupeError} `GENERATE_OPTION`
 */
export function settle(
  prompts: readonly (readonly number[])[],
  options: GenerateOptions,
  tokens: Readonly<Record<string, unknown>>,
): Settled {
  const { eos_token_id: end, pad_token_id: pad } = tokens;
  const settled: Settled = {
    maxNewTokens: options.maxNewTokens,
    temperature: 1,
    topK: Number.POSITIVE_INFINITY,
    topP: 1,
    repetitionPenalty: 1,
    seed: 0,
    numBeams: 1,
    lengthPenalty: 1,
    earlyStopping: false,
    stopTokens: [end ?? []].flat().filter((token): token is number => typeof token === "number"),
    padToken: typeof pad === "number" ? pad : 0,
    ...Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined)),
  };
  check(prompts, settled);
  return settled;
}

function check(prompts: readonly (readonly number[])[], options: Settled): void {
  const refuse = (expected: string, got: unknown): never => {
    throw new TroupeError(
      "GENERATE_OPTION",
      { where: "generate", expected, got: `${got}` },
      { fields: { got } },
    );
  };
  const { maxNewTokens, temperature, topK, topP, repetitionPenalty, seed, numBeams, lengthPenalty } = options;
  const empty = prompts.findIndex((prompt) => prompt.length === 0);
  if (prompts.length === 0) refuse("at least one prompt", 0);
  if (empty >= 0) refuse("prompts of at least one token", `none in prompt ${empty}`);
  if (!Number.isSafeInteger(maxNewTokens) || maxNewTokens < 0)
    refuse("maxNewTokens to be whole and ≥ 0", maxNewTokens);
  if (!(temperature >= 0 && Number.isFinite(temperature))) refuse("temperature to be ≥ 0", temperature);
  if (!(topK >= 1)) refuse("topK to be ≥ 1", topK);
  if (!(topP > 0 && topP <= 1)) refuse("topP to be above 0 and at most 1", topP);
  if (!(repetitionPenalty > 0 && Number.isFinite(repetitionPenalty)))
    refuse("repetitionPenalty to be above 0", repetitionPenalty);
  if (!Number.isSafeInteger(seed)) refuse("seed to be a whole number", seed);
  if (!(Number.isSafeInteger(numBeams) && numBeams >= 1)) refuse("numBeams to be whole and ≥ 1", numBeams);
  if (!Number.isFinite(lengthPenalty)) refuse("lengthPenalty to be finite", lengthPenalty);
  const drawing = ["temperature", "topK", "topP"] as const;
  const drawn = drawing.find(
    (name) => ({ temperature: 1, topK: Number.POSITIVE_INFINITY, topP: 1 })[name] !== options[name],
  );
  if (numBeams > 1 && drawn !== undefined && options[drawn] !== 0)
    refuse(`no ${drawn} beside numBeams, which draws nothing`, options[drawn]);
}

/** What a folder's config.json and generation_config.json, which goes before, say of the tokens that end, pad and are forced. */
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
