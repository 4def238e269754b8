import { encoderSizes, familyOf, type SizeNames } from "../../library/models/index.ts";
import { type Arguments, flagOf } from "./arguments.ts";
import { argumentError } from "./run-parts.ts";

type Fields = Readonly<Record<string, unknown>>;

/** Sizes: flags must agree with config.json. */
const sizes = [
  ...(["numLayers", "hiddenSize", "numAttentionHeads"] as const),
  ...(["maxPositionEmbeddings", "ffnHiddenSize"] as const),
];

/** Flags that may differ from config.json, since the weights do not depend on them. */
const free = ["attentionDropout", "hiddenDropout", "layernormEpsilon", "initMethodStd"] as const;

/**
 * Adds the architecture flags to a model's config.json.
 * @param fields - of a folder's config.json; with `{ model_type }` alone the flags give the sizes
 * @throws {TroupeError} `ARGUMENTS` naming a flag and the field that it contradicts, or a flag without a field in the family
 */
export function withArchitecture(fields: Fields, args: Arguments): Fields {
  const called: SizeNames = familyOf(fields)?.sizes ?? encoderSizes;
  const own: Record<string, unknown> = {};
  for (const size of sizes) {
    if (!(args[size] > 0)) continue;
    for (const field of called[size] ?? []) {
      const stored = fields[field];
      if (stored !== undefined && stored !== null && stored !== args[size])
        throw argumentError(
          `${flagOf(size)} to be ${stored}, the ${field} of the model's config.json`,
          `${args[size]}`,
          "leave the flag out, or name another model",
        );
      own[field] = args[size];
    }
  }
  for (const name of free) {
    const isSaid = name.endsWith("Dropout") ? args[name] >= 0 : args[name] > 0;
    if (!isSaid) continue;
    const ofFamily = called[name] ?? [];
    // A family without a dropout field behaves as with a dropout of 0.
    if (ofFamily.length === 0 && args[name] > 0)
      throw argumentError(
        `no ${flagOf(name)} of ${fields.model_type}`,
        `${args[name]}`,
        "its config.json has no field for it",
      );
    for (const field of ofFamily) own[field] = args[name];
  }
  // By default a feed-forward layer is four times as wide, even if the family's own default differs.
  const [width = ""] = called.ffnHiddenSize ?? [];
  for (const field of called.headWidth ?? [])
    if (fields[field] === undefined && args.hiddenSize > 0 && args.numAttentionHeads > 0)
      own[field] = args.hiddenSize / args.numAttentionHeads;
  const isNew = args.hiddenSize > 0 && fields[width] === undefined && own[width] === undefined;
  return { ...fields, ...own, ...(isNew && width !== "n_inner" && { [width]: 4 * args.hiddenSize }) };
}

/** Size of a vocabulary, padded so that tensor-parallel ranks can split it evenly. */
export function paddedVocabulary(size: number, args: Arguments): number {
  const multiple = args.makeVocabSizeDivisibleBy * args.tensorModelParallelSize;
  return Math.ceil(size / multiple) * multiple;
}
