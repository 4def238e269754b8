import {
  bytesIn,
  hold,
  noGrad,
  numelOf,
  ops,
  scope,
  type Tensor,
  tensor,
} from "../../../compute/tensor/index.ts";
import {
  configOfFile,
  familyOf,
  type GgufForm,
  type GgufModel,
  type GgufTensor,
  type GgufValue,
} from "../../models/index.ts";
import { exportError } from "../export-error.ts";
import type { OpenedModel } from "../open-model.ts";
import { type GgufEntry, writeGguf } from "./write-gguf.ts";

/** Types of weights in GGUF files, with llama.cpp's numbers of such files. */
export const ggufFiles = { F32: 0, F16: 1, Q8_0: 7, Q4_K: 14 } as const;

type FileType = keyof typeof ggufFiles;

/** llama.cpp's name of the embedding. */
const WORDS = "token_embd.weight";

const RUNNABLE = "a model that llama.cpp runs";

/** Elements that are encoded at a time. */
const PART = 1 << 22;

/** A type of GGUF tensors: blocks of some elements of a row. */
interface GgufType {
  /** ggml's number of the type. */
  readonly code: number;
  /** Elements of a block, which lie in one row. */
  readonly blockSize: number;
  readonly blockBytes: number;
  /** Encodes a tensor, float32 and contiguous, whose rows divide into blocks. */
  readonly encode: (values: Tensor) => Uint8Array;
}

/** Types of tensors, by ggml's names. @see https://github.com/ggml-org/ggml/blob/master/docs/gguf.md */
export const ggufTypes = {
  F32: { code: 0, blockSize: 1, blockBytes: 4, encode: by((values) => values) },
  F16: { code: 1, blockSize: 1, blockBytes: 2, encode: by((values) => values.to("float16")) },
  Q8_0: { code: 8, blockSize: 32, blockBytes: 34, encode: by(ops.troupe.quantizeQ80) },
  Q4_K: { code: 12, blockSize: 256, blockBytes: 144, encode: by(ops.troupe.quantizeQ4K) },
} as const satisfies Readonly<Record<string, GgufType>>;

/** A model in llama.cpp's names, and the rows of its embedding. */
export interface NamedModel extends GgufModel {
  readonly numWords: number;
}

/** Finds llama.cpp's form of a model. @throws {TroupeError} `EXPORT`, naming the part that llama.cpp lacks */
export async function ggufModelOf({ model, task, config }: OpenedModel): Promise<NamedModel> {
  const family = familyOf(config);
  const form = (await family?.formats?.gguf?.())?.default as GgufForm | undefined;
  if (family === undefined || form === undefined)
    throw lacking(`model_type ${String(config.model_type)}, for which no architecture of llama.cpp is known`);
  const own = family.config(configOfFile(config));
  const lacked = form.lacks(own, task);
  if (lacked !== undefined) throw lacking(`${lacked}, which its architecture for ${family.modelType} lacks`);
  const made = form.model(own, task);
  const read = new Set(made.tensors.map(({ here }) => here));
  const state = model.namedState();
  for (const name of state.keys())
    if (!(read.has(name) || made.unread?.test(name)))
      throw exportError(RUNNABLE, "a parameter that its architecture has no place for", { module: name });
  const words = made.tensors.find(({ there }) => there === WORDS)?.here ?? "";
  return { ...made, numWords: state.get(words)?.shape[0] ?? 0 };
}

const lacking = (got: string) => exportError(RUNNABLE, got, { hint: "--to onnx exports it" });

/**
 * Writes a GGUF file. Tensors are read, changed, encoded and written one by one.
 * @param path - must not exist
 * @param tokenizer - the header's values of the tokenizer
 */
export async function writeGgufFile(
  path: string,
  { model, read }: OpenedModel,
  { architecture, facts, otherFacts, tensors, computed = {} }: GgufModel,
  {
    type,
    name,
    tokenizer,
  }: {
    readonly type: FileType;
    readonly name: string;
    readonly tokenizer: Readonly<Record<string, GgufValue>>;
  },
): Promise<void> {
  const all = {
    "general.architecture": { text: architecture },
    "general.type": { text: "model" },
    "general.name": { text: name },
    "general.file_type": { uint: ggufFiles[type] },
    "general.quantization_version": { uint: 2 },
    ...Object.fromEntries(Object.entries(facts).map(([key, value]) => [`${architecture}.${key}`, value])),
    ...otherFacts,
    ...tokenizer,
  };
  const state = model.namedState();
  const entries = tensors.map((row) =>
    entryOf(row, state.get(row.here)?.shape ?? [], type, () => read(row.here)),
  );
  for (const [key, values] of Object.entries(computed))
    entries.push(
      entryOf({ there: key, here: key }, [values.length], "F32", async () =>
        hold(() => tensor([...values], { dtype: "float32" })),
      ),
    );
  await writeGguf(path, all, entries);
}

function entryOf(
  { there, change = (values) => values, isExact = false }: GgufTensor,
  given: readonly number[],
  type: FileType,
  read: () => Promise<Tensor>,
): GgufEntry {
  const shape = scope(() => change(ops.troupe.placeholder(given, "float32")).shape);
  const numel = numelOf(shape);
  const { code, blockSize, blockBytes, encode } = typeFor(there, shape, isExact ? "F32" : type);
  const rowSize = shape.at(-1) ?? 1;
  const rowsOfPart = Math.max(1, Math.floor(PART / rowSize));
  async function* parts() {
    using values = await read();
    using changed = noGrad(() => hold(() => change(values).reshape([-1, rowSize]).contiguous()));
    const [rows = 0] = changed.shape;
    for (let row = 0; row < rows; row += rowsOfPart)
      yield scope(() => noGrad(() => encode(changed.narrow(0, row, Math.min(rowsOfPart, rows - row)))));
  }
  return { name: there, shape, code, sizeBytes: (numel / blockSize) * blockBytes, parts };
}

/** The next finer type if rows do not divide into blocks. Vectors are in float32; words' vectors and scores have 8 bits at least. */
function typeFor(name: string, shape: readonly number[], type: FileType): GgufType {
  const rowSize = shape.at(-1) ?? 1;
  if (shape.length < 2) return ggufTypes.F32;
  const isOfWords = name === WORDS || name === "output.weight";
  if (type === "Q4_K" && !isOfWords && rowSize % ggufTypes.Q4_K.blockSize === 0) return ggufTypes.Q4_K;
  if (type === "Q4_K" || type === "Q8_0")
    return rowSize % ggufTypes.Q8_0.blockSize === 0 ? ggufTypes.Q8_0 : ggufTypes.F16;
  return ggufTypes[type];
}

function by(change: (values: Tensor) => Tensor): GgufType["encode"] {
  return (values) => scope(() => noGrad(() => bytesIn(change(values).toTypedArray())));
}
