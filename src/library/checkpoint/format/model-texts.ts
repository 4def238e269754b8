import { type Companions, withoutTokenizer } from "./companions.ts";
import type { JsonObject } from "./strict-json.ts";

/** The file of a model folder that says how `transformers` lets the model generate. */
export const generationConfigName = "generation_config.json";

/** What a model folder says of its model beside the weights. Plain data. */
export interface ModelTexts {
  /** The content of `config.json`. */
  readonly config: JsonObject;
  /** That of `generation_config.json`, where there is one. */
  readonly generationConfig?: JsonObject | undefined;
  /** Its tokenizer, and what else other programs read beside the weights. */
  readonly companions?: Companions | undefined;
  /** Of a folder that holds a delta, and not the model that it is put to. */
  readonly adapter?: AdapterTexts | undefined;
}

/** What the folder of a delta says, as peft reads it. Plain data. */
export interface AdapterTexts {
  /** The content of `adapter_config.json`. */
  readonly config: JsonObject;
  /** What the file calls each parameter, by what the model calls it. */
  readonly names: Readonly<Record<string, string>>;
}

/**
 * What the folder of a model that goes on from another folder's weights says: of the model what that says itself, of the
 * tokens it begins, ends and pads with, which no model knows, what the other folder says, as long as the vocabulary is as large.
 * The other folder's tokenizer travels along unless the model has fewer tokens.
 * @param begunFrom - undefined: nothing but the model says anything
 */
export function textsAfter(begunFrom: ModelTexts | undefined, config: JsonObject): ModelTexts {
  if (begunFrom === undefined) return { config };
  const [had, has] = [begunFrom.config.vocab_size, config.vocab_size];
  if (had !== has) {
    const { companions = {} } = begunFrom;
    const isPadded = typeof had === "number" && typeof has === "number" && had < has;
    return { config, companions: isPadded ? companions : withoutTokenizer(companions) };
  }
  const isThere = (id: unknown) => typeof id !== "number" || id < (config.vocab_size as number);
  const tokens = Object.entries(begunFrom.config).filter(
    ([name, id]) => name.endsWith("_token_id") && isThere(id),
  );
  return { ...begunFrom, config: { ...config, ...Object.fromEntries(tokens) } };
}
