import { type Module, ModuleBuffer, type Parameter } from "../../compute/nn/index.ts";
import { bytesIn, type DType, noGrad, scope, type Tensor, tensor } from "../../compute/tensor/index.ts";
import { TroupeError } from "../../errors/index.ts";

/** Maps names in a model folder's files to the model's own. */
export interface StateNaming {
  /** Prefix that names have in some files and not in others, such as `transformer.`. */
  readonly prefix: string;
  /** Names, without the prefix, of entries that are not parameters of this model. */
  readonly ignored: readonly RegExp[];
  /** Other spellings of names, in old or new releases: each pattern with its replacement. */
  readonly renamed?: readonly (readonly [pattern: RegExp, replacement: string])[];
  /** transformers' names of modules, which adapters use, if they differ from the model's: patterns of the model's names. */
  readonly modules?: readonly (readonly [pattern: RegExp, replacement: string])[];
  /**
   * Names, without the prefix, of a head: a pretrained folder may lack it, which initializes it, or have another, which is ignored. With
   * `outsidePrefix` all names without the prefix are a head. Default: none.
   */
  readonly head?: { readonly outsidePrefix: boolean; readonly names: readonly RegExp[] };
}

/** A model whose weights are stored in Hugging Face's format. */
export interface NamedState extends Module {
  readonly stateNaming: StateNaming;
  /** The config.json with which `transformers` reads a folder as this model. */
  readonly configJson: Readonly<Record<string, ConfigField>>;
}

/** The value of a field of config.json. */
export type ConfigField =
  | string
  | number
  | boolean
  | null
  | readonly ConfigField[]
  | { readonly [name: string]: ConfigField };

/** A weight file's description of a tensor. */
export interface StateEntry {
  readonly dtype: string;
  readonly shape: readonly number[];
}

/** A parameter or buffer, and the entry of a file with its values. */
export interface WeightMatch {
  /** The parameter's full name in the model. */
  readonly name: string;
  readonly parameter: Parameter;
  /** The tensor's name in the file. */
  readonly entry: string;
}

/**
 * Matches each parameter and buffer of a model with an entry of a weight file, with or without the family's prefix. Shapes must be
 * equal; the reader converts dtypes. Reads no values.
 * @returns one match per parameter, in the order of `namedState`
 * @throws `MODEL_WEIGHTS` naming every entry that is missing, unexpected or of another shape
 */
export function matchWeights(model: NamedState, entries: ReadonlyMap<string, StateEntry>): WeightMatch[] {
  return matchState(model, model.namedState(), entries);
}

/** Matches a part of a model's state, in a file with nothing else, as {@link matchWeights} does. */
export function matchState(
  model: Module & Partial<Pick<NamedState, "stateNaming">>,
  state: ReadonlyMap<string, Parameter>,
  entries: ReadonlyMap<string, StateEntry>,
): WeightMatch[] {
  const naming = model.stateNaming ?? { prefix: "", ignored: [] };
  const { matched, missing, unexpected, mismatched } = compareNames(naming, state, entries);
  refuseProblems(model, { missing, unexpected, mismatched: mismatched.map(describeMismatch) });
  return matched;
}

/** The matches of a pretrained folder, and the differences of its head. */
export interface PretrainedWeights {
  readonly matched: readonly WeightMatch[];
  /** Parameters of the head that the folder lacks, or has in another shape: they are initialized. */
  readonly fresh: readonly string[];
  /** Entries of another head in the folder. */
  readonly dropped: readonly string[];
}

/**
 * Matches initial weights of a run as {@link matchWeights} does, but the folder's head may be of another task or number of labels.
 * @throws `MODEL_WEIGHTS` naming every entry outside the head that is missing, unexpected or of another shape
 */
export function pretrained(model: NamedState, entries: ReadonlyMap<string, StateEntry>): PretrainedWeights {
  const state = model.namedState();
  const { matched, missing, unexpected, mismatched } = compareNames(model.stateNaming, state, entries);
  const { prefix, head } = model.stateNaming;
  const bare = bareName(model.stateNaming);
  const isHead = (name: string, prefixed: boolean) =>
    head !== undefined &&
    ((head.outsidePrefix && prefixed && !name.startsWith(prefix)) ||
      head.names.some((pattern) => pattern.test(bare(name))));
  // A file of the stack alone has no prefix, and no head.
  const filePrefixed = [...entries.keys()].some((name) => name.startsWith(prefix));
  const of = <T>(all: readonly T[], test: (one: T) => boolean) => ({
    yes: all.filter(test),
    no: all.filter((one) => !test(one)),
  });
  // Parameters of a delta are not in its base's files.
  const ofModel = missing.filter((name) => state.get(name)?.role !== "delta");
  const lacking = of(ofModel, (name) => isHead(name, true));
  const superfluous = of(unexpected, (entry) => isHead(entry, filePrefixed));
  const reshaped = of(mismatched, ({ name }) => isHead(name, true));
  refuseProblems(model, {
    missing: lacking.no,
    unexpected: superfluous.no,
    mismatched: reshaped.no.map(describeMismatch),
  });
  return {
    matched,
    fresh: [...lacking.yes, ...reshaped.yes.map(({ name }) => name)],
    dropped: [...superfluous.yes, ...reshaped.yes.map(({ entry }) => entry)],
  };
}

/** @returns the model's own name, without its prefix, for a name in a file */
export function bareName({ prefix, renamed = [] }: StateNaming): (name: string) => string {
  return (name) => {
    const bare = name.startsWith(prefix) ? name.slice(prefix.length) : name;
    return renamed.reduce((text, [pattern, replacement]) => text.replace(pattern, replacement), bare);
  };
}

/** @returns transformers' name of the model's module or parameter `name` */
export function moduleName({ modules = [] }: Pick<StateNaming, "modules">): (name: string) => string {
  return (name) => modules.reduce((text, [pattern, replacement]) => text.replace(pattern, replacement), name);
}

interface Mismatch {
  readonly name: string;
  readonly entry: string;
  readonly expected: readonly number[];
  readonly got: readonly number[];
}

interface Comparison {
  readonly matched: WeightMatch[];
  readonly missing: string[];
  readonly unexpected: string[];
  readonly mismatched: Mismatch[];
}

function compareNames(
  naming: StateNaming,
  state: ReadonlyMap<string, Parameter>,
  entries: ReadonlyMap<string, StateEntry>,
): Comparison {
  const bare = bareName(naming);
  const found: Comparison = { matched: [], missing: [], unexpected: [], mismatched: [] };
  const unused = new Map<string, string>();
  for (const entry of entries.keys()) {
    if (unused.has(bare(entry))) found.unexpected.push(entry);
    else unused.set(bare(entry), entry);
  }
  for (const [name, parameter] of state) {
    const entry = unused.get(bare(name));
    unused.delete(bare(name));
    const { shape } = parameter;
    const got = entries.get(entry ?? "")?.shape ?? [];
    if (entry === undefined) found.missing.push(name);
    else if (got.join() !== shape.join()) found.mismatched.push({ name, entry, expected: shape, got });
    else found.matched.push({ name, parameter, entry });
  }
  const { ignored } = naming;
  for (const [name, entry] of unused)
    if (!ignored.some((pattern) => pattern.test(name))) found.unexpected.push(entry);
  return found;
}

const describeMismatch = ({ name, expected, got }: Mismatch): string => `${name} [${expected}]: [${got}]`;

/** Source of named tensors, such as a `HuggingFaceFolder`. */
export interface WeightSource {
  readonly names: readonly string[];
  entry(name: string): StateEntry;
  /** The bytes of a tensor, row-major and little-endian. */
  read(name: string): Promise<Uint8Array>;
}

/** A parameter to write to a weight file. */
export interface WeightBytes {
  readonly name: string;
  readonly dtype: keyof typeof weightDTypes;
  readonly shape: readonly number[];
  read(): Uint8Array;
}

/** Weights are floats: dtype in files, dtype of tensors, and array of the bits. */
export const weightDTypes = {
  F64: { dtype: "float64", array: Float64Array },
  F32: { dtype: "float32", array: Float32Array },
  BF16: { dtype: "bfloat16", array: Uint16Array },
  F16: { dtype: "float16", array: Uint16Array },
} as const;

/** Type of counters in torch's buffers. */
export const counted = { dtype: "int64", array: BigInt64Array } as const;

/**
 * Copies a source's values into the bound parameters of a model on one device, converting dtypes.
 * @throws `MODEL_WEIGHTS`, before anything is copied, also for a weight that is not a float
 */
export async function loadWeights(model: NamedState, source: WeightSource): Promise<void> {
  const entries = new Map(source.names.map((name) => [name, source.entry(name)]));
  await copyWeights(model, matchWeights(model, entries), source);
}

/** Copies given matches. @throws `MODEL_WEIGHTS`, before anything is copied, for a weight that is not a float */
export async function copyWeights(
  model: Module,
  matched: readonly WeightMatch[],
  source: Pick<WeightSource, "entry" | "read">,
): Promise<void> {
  const matches = matched.map((match) => ({ ...match, ...formatOf(model, match, source) }));
  for (const { parameter, entry, dtype, array } of matches) {
    const bytes = await source.read(entry);
    const values = new array(bytes.buffer as ArrayBuffer, bytes.byteOffset, parameter.numel);
    noGrad(() => scope(() => void parameter.tensor.copy_(tensor(values, { dtype, shape: parameter.shape }))));
  }
}

/**
 * The bound parameters and buffers of a model on one device, for `saveHuggingFaceFolder`; tied ones once. A parameter is copied only
 * when it is read.
 */
export function weightBytes(model: Module): WeightBytes[] {
  return [...model.namedState()].map(([name, { tensor }]) => tensorBytes(name, tensor));
}

/** A contiguous tensor to write to a weight file; copied only when it is read. */
export function tensorBytes(name: string, tensor: Tensor): WeightBytes {
  return {
    name,
    dtype: spellingOf(tensor.dtype),
    shape: tensor.shape,
    read: () => bytesIn(tensor.toTypedArray()),
  };
}

function formatOf(
  model: Module,
  { name, parameter, entry }: WeightMatch,
  source: Pick<WeightSource, "entry">,
) {
  const { dtype } = source.entry(entry);
  if (dtype === "I64" && parameter instanceof ModuleBuffer) return counted;
  if (Object.hasOwn(weightDTypes, dtype)) return weightDTypes[dtype as keyof typeof weightDTypes];
  throw new TroupeError("MODEL_WEIGHTS", {
    where: model.constructor.name,
    expected: `${name} to be one of ${Object.keys(weightDTypes).join(", ")}`,
    got: dtype,
    fields: { name, dtype },
  });
}

function spellingOf(dtype: DType): keyof typeof weightDTypes {
  const spellings = Object.keys(weightDTypes) as (keyof typeof weightDTypes)[];
  const found = spellings.find((spelling) => weightDTypes[spelling].dtype === dtype);
  if (found !== undefined) return found;
  throw new TroupeError("MODEL_WEIGHTS", {
    where: "weightBytes",
    expected: "weights that are floats",
    got: dtype,
    fields: { dtype },
  });
}

interface WeightProblems {
  readonly missing: string[];
  readonly unexpected: string[];
  readonly mismatched: string[];
}

function refuseProblems(model: Module, wrong: WeightProblems): void {
  const problems = Object.entries(wrong).filter(([, names]) => names.length > 0);
  if (problems.length === 0) return;
  const summary = problems
    .map(([problem, names]) => `${names.length} ${problem} (${abridge(names)})`)
    .join("; ");
  throw new TroupeError("MODEL_WEIGHTS", {
    where: model.constructor.name,
    expected: "weights of exactly the model's names and shapes",
    got: summary,
    hint: `is it the same architecture and config.json?${wrong.missing.length > 0 ? " stateNaming's head names parameters that may be missing" : ""}`,
    fields: { ...wrong },
  });
}

function abridge(names: readonly string[]): string {
  const shown = names.slice(0, 4).join(", ");
  return names.length > 4 ? `${shown}, and ${names.length - 4} more` : shown;
}
