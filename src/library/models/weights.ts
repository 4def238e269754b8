import { type Module, ModuleBuffer, type Parameter } from "../../compute/nn/index.ts";
import { type DType, noGrad, scope, type Tensor, tensor } from "../../compute/tensor/index.ts";
import { TroupeError } from "../../errors/index.ts";

/** How the names in a model folder's files relate to a model's own. */
export interface StateNaming {
  /** What the names of some files begin with and those of others do not, such as `transformer.`. */
  readonly prefix: string;
  /** Names, without the prefix, of entries that are no parameters of this model. */
  readonly ignored: readonly RegExp[];
  /** Other spellings of names, as old or new releases have them: what is found becomes what it is followed by. */
  readonly renamed?: readonly (readonly [pattern: RegExp, replacement: string])[];
  /** What transformers calls its modules, which adapters are named by, where files call them otherwise: of the model's own names. */
  readonly modules?: readonly (readonly [pattern: RegExp, replacement: string])[];
  /**
   * What a pretrained folder may lack, which is then drawn from its initializer, and may hold in vain: names without the
   * prefix. What lies outside the prefix is a head, where `head` is "outside the prefix". Default: nothing.
   */
  readonly head?: { readonly outsidePrefix: boolean; readonly names: readonly RegExp[] };
}

/** A model whose weights are exchanged with Hugging Face. */
export interface NamedState extends Module {
  readonly stateNaming: StateNaming;
  /** The config.json of a folder that `transformers` reads as this model. */
  readonly configJson: Readonly<Record<string, ConfigField>>;
}

/** What a field of a config.json may hold. */
export type ConfigField =
  | string
  | number
  | boolean
  | null
  | readonly ConfigField[]
  | { readonly [name: string]: ConfigField };

/** What a weight file says of one tensor. */
export interface StateEntry {
  readonly dtype: string;
  readonly shape: readonly number[];
}

/** One parameter or buffer and the entry of the file that holds its values. */
export interface WeightMatch {
  /** The parameter's full name in the model. */
  readonly name: string;
  readonly parameter: Parameter;
  /** The tensor's name in the file. */
  readonly entry: string;
}

/**
 * Finds for each parameter and buffer of a model the entry of a weight file, with and without the family's prefix. Shapes are
 * compared; dtypes are the reader's to convert. Nothing is read.
 * @returns one match a parameter, in the order of `namedState`
 * @throws `MODEL_WEIGHTS` naming every entry that is missing, unexpected or of another shape
 */
export function matchWeights(model: NamedState, entries: ReadonlyMap<string, StateEntry>): WeightMatch[] {
  return matchState(model, model.namedState(), entries);
}

/** The same for some of a model's state, which is all that the file is to hold. */
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

/** What a pretrained folder gives a model, and what it does not. */
export interface PretrainedWeights {
  readonly matched: readonly WeightMatch[];
  /** Parameters of the head that the folder lacks, or has in another shape: drawn from their initializers. */
  readonly fresh: readonly string[];
  /** Entries of the folder that belong to another head. */
  readonly dropped: readonly string[];
}

/**
 * The same for a folder that a run begins with: its head may be another one, of another task or number of labels. All else
 * must fit.
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
  // A file of the stack alone has no prefix, and nothing in it is a head.
  const filePrefixed = [...entries.keys()].some((name) => name.startsWith(prefix));
  const of = <T>(all: readonly T[], test: (one: T) => boolean) => ({
    yes: all.filter(test),
    no: all.filter((one) => !test(one)),
  });
  // A delta is what its base lacks.
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

/** @returns the name in a model's own words, without its prefix, of what a file calls `name` */
export function bareName({ prefix, renamed = [] }: StateNaming): (name: string) => string {
  return (name) => {
    const bare = name.startsWith(prefix) ? name.slice(prefix.length) : name;
    return renamed.reduce((text, [pattern, replacement]) => text.replace(pattern, replacement), bare);
  };
}

/** @returns what transformers calls the module, or its parameter, that the model calls `name` */
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

function describeMismatch({ name, expected, got }: Mismatch): string {
  return `${name} [${expected}]: [${got}]`;
}

/** Where the values of named tensors come from; a `HuggingFaceFolder` is one. */
export interface WeightSource {
  readonly names: readonly string[];
  entry(name: string): StateEntry;
  /** The bytes of a tensor, row-major and little-endian. */
  read(name: string): Promise<Uint8Array>;
}

/** A parameter as a weight file takes it. */
export interface WeightBytes {
  readonly name: string;
  readonly dtype: keyof typeof weightDTypes;
  readonly shape: readonly number[];
  read(): Uint8Array;
}

// Weights are floats: how files spell their dtypes, how tensors do, and the array that holds the bits.
const weightDTypes = {
  F64: { dtype: "float64", array: Float64Array },
  F32: { dtype: "float32", array: Float32Array },
  BF16: { dtype: "bfloat16", array: Uint16Array },
  F16: { dtype: "float16", array: Uint16Array },
} as const;

/** What torch counts in, in its buffers. */
const counted = { dtype: "int64", array: BigInt64Array } as const;

/**
 * Copies a source's values into the bound parameters of a model on one device, converting dtypes.
 * @throws `MODEL_WEIGHTS` before anything is copied, also for a weight that is no float
 */
export async function loadWeights(model: NamedState, source: WeightSource): Promise<void> {
  const entries = new Map(source.names.map((name) => [name, source.entry(name)]));
  await copyWeights(model, matchWeights(model, entries), source);
}

/** The same for what was matched already. @throws `MODEL_WEIGHTS` for a weight that is no float, before anything is copied */
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
 * The bound parameters and buffers of a model on one device, for `saveHuggingFaceFolder`; tied ones once. Nothing is copied
 * before a parameter is read.
 */
export function weightBytes(model: Module): WeightBytes[] {
  return [...model.namedState()].map(([name, { tensor }]) => tensorBytes(name, tensor));
}

/** One tensor, contiguous, as a weight file takes it. Nothing is copied before it is read. */
export function tensorBytes(name: string, tensor: Tensor): WeightBytes {
  return {
    name,
    dtype: spellingOf(tensor.dtype),
    shape: tensor.shape,
    read: () => {
      const { buffer, byteOffset, byteLength } = tensor.toTypedArray();
      return new Uint8Array(buffer, byteOffset, byteLength);
    },
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
  throw new TroupeError(
    "MODEL_WEIGHTS",
    {
      where: model.constructor.name,
      expected: `${name} to be one of ${Object.keys(weightDTypes).join(", ")}`,
      got: dtype,
    },
    { fields: { name, dtype } },
  );
}

function spellingOf(dtype: DType): keyof typeof weightDTypes {
  const spellings = Object.keys(weightDTypes) as (keyof typeof weightDTypes)[];
  const found = spellings.find((spelling) => weightDTypes[spelling].dtype === dtype);
  if (found !== undefined) return found;
  throw new TroupeError(
    "MODEL_WEIGHTS",
    { where: "weightBytes", expected: "weights that are floats", got: dtype },
    {
      fields: { dtype },
    },
  );
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
  throw new TroupeError(
    "MODEL_WEIGHTS",
    {
      where: model.constructor.name,
      expected: "weights of exactly the model's names and shapes",
      got: summary,
      hint: `is it the same architecture and config.json?${wrong.missing.length > 0 ? " what is to be drawn is named by stateNaming's head" : ""}`,
    },
    { fields: { ...wrong } },
  );
}

function abridge(names: readonly string[]): string {
  const shown = names.slice(0, 4).join(", ");
  return names.length > 4 ? `${shown}, and ${names.length - 4} more` : shown;
}
