import { TroupeError } from "../errors.ts";
import type { Module, Parameter } from "../nn/index.ts";
import { noGrad, scope, type Tensor } from "../tensor/index.ts";

/** How the names in a model folder's files relate to a model's own. */
export interface StateNaming {
  /** What the names of some files begin with and those of others do not, such as `transformer.`. */
  readonly prefix: string;
  /** Names, without the prefix, of entries that are no parameters of this model. */
  readonly ignored: readonly RegExp[];
}

/** A model whose weights are exchanged with Hugging Face. */
export interface NamedState extends Module {
  readonly stateNaming: StateNaming;
}

/** What a weight file says of one tensor. */
export interface StateEntry {
  readonly dtype: string;
  readonly shape: readonly number[];
}

/** One parameter and the entry of the file that holds its values. */
export interface WeightMatch {
  /** The parameter's full name in the model. */
  readonly name: string;
  readonly parameter: Parameter;
  /** The tensor's name in the file. */
  readonly entry: string;
}

/**
 * Finds for each parameter of a model the entry of a weight file, with and without the family's prefix. Shapes are
 * compared; dtypes are the reader's to convert. Nothing is read.
 * @returns one match a parameter, in the order of `namedParameters`
 * @throws `MODEL_WEIGHTS` naming every entry that is missing, unexpected or of another shape
 */
export function matchWeights(model: NamedState, entries: ReadonlyMap<string, StateEntry>): WeightMatch[] {
  const { prefix, ignored } = model.stateNaming;
  const bare = (name: string) => (name.startsWith(prefix) ? name.slice(prefix.length) : name);
  const matches: WeightMatch[] = [];
  const wrong: WeightProblems = { missing: [], unexpected: [], mismatched: [] };
  const unused = new Map<string, string>();
  for (const entry of entries.keys()) {
    if (unused.has(bare(entry))) wrong.unexpected.push(entry);
    else unused.set(bare(entry), entry);
  }
  for (const [name, parameter] of model.namedParameters()) {
    const entry = unused.get(bare(name));
    unused.delete(bare(name));
    const shape = entries.get(entry ?? "")?.shape;
    if (entry === undefined) wrong.missing.push(name);
    else if (shape?.join() !== parameter.shape.join())
      wrong.mismatched.push(`${name} [${parameter.shape}]: [${shape}]`);
    else matches.push({ name, parameter, entry });
  }
  for (const [name, entry] of unused)
    if (!ignored.some((pattern) => pattern.test(name))) wrong.unexpected.push(entry);
  refuseProblems(model, wrong);
  return matches;
}

/** Where the values of named tensors come from: a safetensors file, several of them, or memory. */
export interface WeightSource {
  readonly entries: ReadonlyMap<string, StateEntry>;
  /** The whole tensor; the caller owns it. */
  read(entry: string): Tensor;
}

/**
 * Copies a source's values into the bound parameters of a model on one device, converting dtypes.
 * @throws `MODEL_WEIGHTS` before anything is copied
 */
export function loadWeights(model: NamedState, source: WeightSource): void {
  const matches = matchWeights(model, source.entries);
  noGrad(() => {
    for (const { parameter, entry } of matches) {
      scope(() => void parameter.tensor.copy_(source.read(entry)));
    }
  });
}

interface WeightProblems {
  readonly missing: string[];
  readonly unexpected: string[];
  readonly mismatched: string[];
}

function refuseProblems(model: NamedState, wrong: WeightProblems): void {
  const problems = Object.entries(wrong).filter(([, names]) => names.length > 0);
  if (problems.length === 0) return;
  const summary = problems
    .map(([problem, names]) => `${names.length} ${problem} (${abridge(names)})`)
    .join("; ");
  throw new TroupeError(
    "MODEL_WEIGHTS",
    `[${model.constructor.name}] weights must have exactly the model's names and shapes: ${summary} (is it the same architecture and config.json?)`,
    { fields: { ...wrong } },
  );
}

function abridge(names: readonly string[]): string {
  const shown = names.slice(0, 4).join(", ");
  return names.length > 4 ? `${shown}, and ${names.length - 4} more` : shown;
}
