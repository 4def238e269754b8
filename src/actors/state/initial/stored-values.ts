import { initializeSlice, loadInitializers, logicalRuns } from "../../../compute/nn/index.ts";
import { type SavedProgress, updatesOf } from "../../../compute/optim/index.ts";
import * as parallel from "../../../compute/parallel/index.ts";
import {
  type DType,
  hold,
  itemBytes,
  numelOf,
  overHost,
  scope,
  type Tensor,
  zeros,
} from "../../../compute/tensor/index.ts";
import { TroupeError } from "../../../errors/index.ts";
import * as checkpoints from "../../../library/checkpoint/index.ts";
import type { InitialStateOf } from "../../protocols/index.ts";
import { entryName } from "../saving/index.ts";
import type { InitialValues } from "./initial-values.ts";

/** Values from open files. */
export class StoredValues implements InitialValues {
  readonly #initial: InitialStateOf<"weights" | "checkpoint">;
  readonly #stored: StoredTensors & AsyncDisposable;

  private constructor(
    initial: InitialStateOf<"weights" | "checkpoint">,
    stored: StoredTensors & AsyncDisposable,
  ) {
    this.#initial = initial;
    this.#stored = stored;
  }

  static async open(initial: InitialStateOf<"weights" | "checkpoint">): Promise<StoredValues> {
    const stored =
      initial.kind === "weights"
        ? await checkpoints.HuggingFaceFolder.open(initial.folder)
        : await openStored(initial);
    return new StoredValues(initial, stored);
  }

  /**
   * Leaves tensors that are not stored as they are: zeros.
   * @throws {TroupeError} `CHECKPOINT_SHAPE` for a stored tensor that is not the parameter's; `RESUME_MISMATCH` for a parameter
   * that the checkpoint's run trained by another rule
   */
  async fill(state: parallel.BlockState): Promise<void> {
    const initial = this.#initial;
    const stored = this.#stored;
    const progress = initial.kind === "checkpoint" ? initial.progress : undefined;
    for (const { kind, tensor, pieces } of state.tensors) {
      if (initial.kind === "weights" && kind !== parallel.MASTER) continue;
      // Files are read into the host's memory: on a device this is a copy, else the tensor itself.
      using into = hold(() => tensor.onto("cpu"));
      const parts: checkpoints.TensorPart[] = [];
      for (const piece of pieces) {
        const { name } = piece.parameter;
        const entry = initial.kind === "weights" ? initial.entries[name] : entryName(kind, name);
        if (entry === undefined) {
          await draw(piece, into, initial as InitialStateOf<"weights">);
          continue;
        }
        if (kind !== parallel.MASTER && !stored.has(entry)) {
          requireUnseen(progress, name, entry, stored.path);
          continue;
        }
        if (state.layout.constant) {
          await readConstant(stored, entry, piece, into);
          continue;
        }
        const { dtype, bytes } = readableEntry(stored, entry, piece, state.layout);
        if (dtype === into.dtype)
          parts.push({ name: entry, stretches: stretchesOf(piece, bytes, piece.rangeBegin) });
        else
          await readConverted(
            stored,
            { name: entry, stretches: stretchesOf(piece, bytes, 0) },
            piece,
            dtype,
            into,
          );
      }
      // One read a block and kind: neighbours in the file share chunks.
      if (parts.length > 0) await stored.readParts(parts, into);
      if (tensor.device !== "cpu") tensor.copy_(into);
    }
    state.publish(progress);
  }

  /** Bytes read from a checkpoint's files so far, in complete chunks. */
  get readBytes(): number {
    return this.#stored instanceof checkpoints.Checkpoint ? this.#stored.readBytes : 0;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#stored[Symbol.asyncDispose]();
  }
}

/** Reads by messages if the run has several hosts: this one may not have the folder. */
async function openStored({ path, reader }: InitialStateOf<"checkpoint">): Promise<checkpoints.Checkpoint> {
  if (reader === undefined) return checkpoints.openCheckpoint(path);
  const { readers, deadlineMs } = reader;
  const relays = readers.map(
    (each): checkpoints.Relay =>
      (asked) =>
        each.ask("readStored", asked, { deadlineMs }),
  );
  return checkpoints.Checkpoint.open(checkpoints.relayedFolder(path, relays));
}

/** Draws parameters that a folder lacks as a new run would. */
async function draw(piece: parallel.Piece, into: Tensor, { seed }: InitialStateOf<"weights">): Promise<void> {
  await loadInitializers([piece.parameter.init]);
  scope(() => {
    const slice = into.narrow(0, piece.rangeBegin, piece.numel);
    overHost(slice, (host) => initializeSlice(host, piece.parameter, seed, piece.parameterBegin));
  });
}

type StoredTensors = Pick<
  checkpoints.Checkpoint | checkpoints.HuggingFaceFolder,
  "path" | "has" | "entry" | "readParts"
>;

/** A dtype that values are converted from. */
interface Readable {
  readonly dtype: DType;
  readonly bytes: number;
}

const READABLE: Partial<Record<checkpoints.SafetensorsDType, Readable>> = {
  F64: { dtype: "float64", bytes: 8 },
  F32: { dtype: "float32", bytes: 4 },
  BF16: { dtype: "bfloat16", bytes: 2 },
  F16: { dtype: "float16", bytes: 2 },
};

/** torch's dtype of counts in its buffers. */
const COUNTED: Readable = { dtype: "int64", bytes: 8 };

/**
 * Requires state for every parameter that has seen updates; one without starts with zeros. Moments that began at zero now would
 * be bias-corrected as if as old as its updates, and take steps far too long.
 */
function requireUnseen(
  progress: SavedProgress | undefined,
  parameter: string,
  entry: string,
  path: string,
): void {
  if (updatesOf(progress, parameter) === 0) return;
  throw new TroupeError("RESUME_MISMATCH", {
    where: "resume",
    expected: `optimizer state of ${parameter} in the checkpoint`,
    got: `no ${entry} in ${path}`,
    hint: "it had another optimizer; name the checkpoint as pretrained to begin a new run with its weights",
    fields: { path, entry, parameter },
  });
}

/** The stored dtype of a piece's elements. @throws {TroupeError} `CHECKPOINT_SHAPE` */
function readableEntry(
  stored: StoredTensors,
  entry: string,
  { parameter }: parallel.Piece,
  { written }: parallel.FlatBlock,
): Readable {
  const { dtype, shape } = stored.entry(entry);
  const readable = written && dtype === "I64" ? COUNTED : READABLE[dtype];
  const expected = parameter.split?.logicalShape ?? parameter.shape;
  if (readable !== undefined && shape.join() === expected.join()) return readable;
  throw otherEntry(stored.path, entry, `floats of shape [${expected}]`, dtype, shape);
}

function otherEntry(
  path: string,
  entry: string,
  expected: string,
  dtype: string,
  shape: readonly number[],
): TroupeError {
  return new TroupeError("CHECKPOINT_SHAPE", {
    where: "checkpoint",
    expected: `${entry} in ${path} to be ${expected}`,
    got: `${dtype} [${shape}]`,
    hint: "is it the same model?",
    fields: { path, entry, dtype, shape },
  });
}

/** @throws {TroupeError} `CHECKPOINT_SHAPE` for another shape or dtype: a constant is not converted */
async function readConstant(
  stored: StoredTensors,
  entry: string,
  { parameter, rangeBegin, numel }: parallel.Piece,
  into: Tensor,
): Promise<void> {
  const { dtype, shape } = stored.entry(entry);
  if (dtype !== checkpoints.toSafetensorsDType(parameter.dtype) || shape.join() !== parameter.shape.join())
    throw otherEntry(stored.path, entry, `${parameter.dtype} of shape [${parameter.shape}]`, dtype, shape);
  const values = hold(() => zeros([numelOf(parameter.shape)], { dtype: parameter.dtype, device: "cpu" }));
  try {
    const sizeBytes = values.numel * itemBytes(parameter.dtype);
    await stored.readParts([{ name: entry, stretches: Float64Array.of(0, 0, sizeBytes) }], values);
    scope(() => {
      parallel.constantIn(into.narrow(0, rangeBegin, numel), parameter).copy_(values);
    });
  } finally {
    values.dispose();
  }
}

/** Copies a piece's values into its part of the owned range `into`, converting the dtype. */
async function readConverted(
  stored: StoredTensors,
  part: checkpoints.TensorPart,
  { rangeBegin, numel }: parallel.Piece,
  dtype: DType,
  into: Tensor,
): Promise<void> {
  const values = hold(() => zeros([numel], { dtype, device: "cpu" }));
  try {
    await stored.readParts([part], values);
    scope(() => {
      into.narrow(0, rangeBegin, numel).copy_(values);
    });
  } finally {
    values.dispose();
  }
}

/** The stretches of a piece in the complete tensor, and in memory from element `at` on: three numbers each, in bytes. */
function stretchesOf(
  { parameter, parameterBegin, numel }: parallel.Piece,
  itemBytes: number,
  at: number,
): Float64Array {
  const stretches: number[] = [];
  for (const run of logicalRuns(parameter.shape, parameter.split, parameterBegin, numel)) {
    const place = at + run.begin - parameterBegin;
    stretches.push(run.logicalBegin * itemBytes, place * itemBytes, run.numel * itemBytes);
  }
  return Float64Array.from(stretches);
}
