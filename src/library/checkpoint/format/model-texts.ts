import { type Companions, withoutTokenizer } from "./companions.ts";
import type { JsonObject } from "./strict-json.ts";

/** The file of a model folder with the settings for generation in `transformers`. */
export const generationConfigName = "generation_config.json";

/** Texts of a model folder besides the weights. Plain data. */
export interface ModelTexts {
  /** The content of `config.json`. */
  readonly config: JsonObject;
  /** The content of `generation_config.json`, where there is one. */
  readonly generationConfig?: JsonObject | undefined;
  /** Its tokenizer and the other files that programs read besides the weights. */
  readonly companions?: Companions | undefined;
  /** Set for a folder with a delta, without the model that it is applied to. */
  readonly adapter?: AdapterTexts | undefined;
}

/** Texts of a delta's folder, as peft reads them. Plain data. */
export interface AdapterTexts {
  /** The content of `adapter_config.json`. */
  readonly config: JsonObject;
  /** The file's name for each parameter, by the model's name. */
  readonly names: Readonly<Record<string, string>>;
}

/**
 * Builds the texts of a model that began with another folder's weights. The model's own config wins; the tokens that
 * begin, end and pad texts, which a model does not know, come from the other folder if the vocabularies are equally
 * large. So does the tokenizer, unless the model has fewer tokens.
 * @param begunFrom - undefined: only the model's config is used
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
