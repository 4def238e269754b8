import { HuggingFaceFolder, type SafetensorsDType, SafetensorsFile } from "../checkpoint/index.ts";
import { TroupeError } from "../errors.ts";
import { MASTER, type Piece, type ShardStore } from "../parallel/index.ts";
import { type DType, scope, type Tensor, tensor } from "../tensor/index.ts";

/** Where a run's state comes from. Plain data. */
export type InitialState =
  /** Every parameter drawn from its initializer. */
  | { readonly kind: "seed"; readonly step: 0; readonly seed: number }
  /** Parameters from a Hugging Face folder; moments zero. */
  | {
      readonly kind: "weights";
      readonly step: 0;
      readonly folder: string;
      /** The folder's name of each parameter. */
      readonly entries: Readonly<Record<string, string>>;
    }
  /** Everything from a checkpoint, after `step` updates. */
  | {
      readonly kind: "checkpoint";
      readonly step: number;
      readonly modelPath: string;
      readonly optimizerPath: string;
    };

/** @returns the name of one parameter's state in a checkpoint: its own in the model, `<kind>.<parameter>` in the optimizer */
export function entryName(kind: string, parameter: string): string {
  return kind === MASTER ? parameter : `${kind}.${parameter}`;
}

/**
 * Fills what a shard owns, reading only the bytes it owns.
 * @throws {TroupeError} `CHECKPOINT_SHAPE` for a stored tensor that is not the parameter's; what opening a file throws
 */
export async function readInitialState(initial: InitialState, store: ShardStore): Promise<void> {
  switch (initial.kind) {
    case "seed":
      for (let block = 0; block < store.numBlocks; block++) store.initialize(block, initial.seed);
      return;
    case "weights": {
      await using folder = await HuggingFaceFolder.open(initial.folder);
      await fill(store, isMaster, folder, (_, parameter) => initial.entries[parameter] ?? parameter);
      return;
    }
    case "checkpoint": {
      await using model = await SafetensorsFile.open(initial.modelPath, LARGE_HEADER);
      await using optimizer = await SafetensorsFile.open(initial.optimizerPath, LARGE_HEADER);
      await fill(store, isMaster, model, entryName);
      await fill(store, (kind) => !isMaster(kind), optimizer, entryName);
      return;
    }
    default:
      initial satisfies never;
  }
}

const LARGE_HEADER = { maxHeaderBytes: 1e8 } as const;

type StoredTensors = Pick<SafetensorsFile, "path" | "entry" | "readRange">;

const isMaster = (kind: string) => kind === MASTER;

async function fill(
  store: ShardStore,
  wanted: (kind: string) => boolean,
  stored: StoredTensors,
  nameOf: (kind: string, parameter: string) => string,
): Promise<void> {
  for (let block = 0; block < store.numBlocks; block++) {
    for (const { kind, tensor, pieces } of store.state(block)) {
      if (!wanted(kind)) continue;
      for (const piece of pieces) await readPiece(stored, nameOf(kind, piece.parameter.name), piece, tensor);
    }
    if (wanted(MASTER)) store.publish(block);
  }
}

const READABLE: Partial<Record<SafetensorsDType, { dtype: DType; bytes: number }>> = {
  F64: { dtype: "float64", bytes: 8 },
  F32: { dtype: "float32", bytes: 4 },
  BF16: { dtype: "bfloat16", bytes: 2 },
  F16: { dtype: "float16", bytes: 2 },
};

/** Copies a piece's values into its place in the owned range `into`, converting the dtype. */
async function readPiece(stored: StoredTensors, entry: string, piece: Piece, into: Tensor): Promise<void> {
  const { dtype, shape } = stored.entry(entry);
  const readable = READABLE[dtype];
  if (readable === undefined || shape.join() !== piece.parameter.shape.join()) {
    throw new TroupeError(
      "CHECKPOINT_SHAPE",
      `[checkpoint] expected ${entry} in ${stored.path} to be floats of shape [${piece.parameter.shape}]: got ${dtype} [${shape}] (is it the same model?)`,
      { fields: { path: stored.path, entry, dtype, shape } },
    );
  }
  const bytes = new Uint8Array(piece.numel * readable.bytes);
  await stored.readRange(entry, piece.parameterBegin * readable.bytes, bytes);
  scope(() => {
    const values = tensor(elementsOf(bytes.buffer, readable.dtype), { dtype: readable.dtype });
    into.narrow(0, piece.rangeBegin, piece.numel).copy_(values);
  });
}

function elementsOf(buffer: ArrayBuffer, dtype: DType): Float64Array | Float32Array | Uint16Array {
  if (dtype === "float64") return new Float64Array(buffer);
  return dtype === "float32" ? new Float32Array(buffer) : new Uint16Array(buffer);
}
