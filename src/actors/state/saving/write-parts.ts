import { constantIn, MASTER } from "../../../compute/parallel/index.ts";
import { scope, type Tensor } from "../../../compute/tensor/index.ts";
import * as checkpoints from "../../../library/checkpoint/index.ts";
import type { SaveOrder, SaveProgress, StateEntry } from "../../protocols/index.ts";
import { entryName } from "./entry-name.ts";
import type { PartCollection } from "./part-collection.ts";

/** Whether an actor's emission is a save's progress. */
export function isSaveProgress(event: unknown): event is SaveProgress {
  return (event as Partial<SaveProgress> | null)?.kind === "checkpoint.progressed";
}

/** The destination of a save, and its listener. */
export interface Writing {
  readonly storage: checkpoints.CheckpointStorage;
  /** Which checkpoints are kept once the new one is durable; all without a rule. */
  readonly keep: checkpoints.KeepRule | undefined;
  readonly report: (progress: SaveProgress) => void;
}

/** About how many progress reports a save makes. */
const NUM_REPORTS = 20;

/**
 * Writes a save while its parts still come: each tensor as soon as it is complete, in the order of the files, from the memory
 * in which it came. That memory is freed with the last tensor in it, unless the save is kept.
 * @throws {TroupeError} `CHECKPOINT_SAVE_FAILED`; `CHECKPOINT_ABANDONED` if the parts stop coming
 */
export async function writeParts(
  { storage, keep, report }: Writing,
  order: SaveOrder,
  collection: PartCollection,
): Promise<{ path: string; sizeBytes: number }> {
  const { image } = collection;
  const { step } = order.state;
  const { names = {} } = order.texts.adapter ?? {};
  const planned = (entry: StateEntry) => plannedAs(entry, names);
  const weights = order.entries.filter(({ kind }) => kind === MASTER).map(planned);
  const optimizer = order.entries.filter(({ kind }) => kind !== MASTER).map(planned);
  const plan = { step, ...order.texts, weights, optimizer };
  await using draft = await checkpoints.CheckpointDraft.begin(storage, plan, {
    named: order.named,
    ...(keep && { keep }),
  });
  const totalBytes = draft.plannedBytes;
  let reportedBytes = 0;
  const entries = new Map(order.entries.map((entry) => [checkpoints.entryOf(planned(entry)), entry]));
  for (const name of draft.order) {
    const entry = entries.get(name) as StateEntry;
    await collection.until(() => image.has(entry));
    for (const { values } of image.ranges(entry)) {
      try {
        await draft.write(name, bytesOf(entry, values));
      } finally {
        values.dispose();
      }
    }
    if (!order.keep) image.release(entry);
    const { writtenBytes } = draft;
    if (writtenBytes - reportedBytes < totalBytes / NUM_REPORTS && writtenBytes < totalBytes) continue;
    reportedBytes = writtenBytes;
    report({ kind: "checkpoint.progressed", step, writtenBytes, totalBytes });
  }
  const progress = await collection.complete(order.numParts);
  const { path, sizeBytes } = await draft.commit({
    ...order.state,
    optimizer: progress as unknown as checkpoints.JsonValue,
  });
  return { path, sizeBytes };
}

/** @param names - the file's names of parameters, if it has its own */
export function plannedAs(
  { kind, parameter, shape, dtype = "float32" }: StateEntry,
  names: Readonly<Record<string, string>>,
): checkpoints.PlannedTensor {
  const tensor = { name: entryName(kind, parameter), dtype: checkpoints.toSafetensorsDType(dtype), shape };
  return kind === MASTER ? { ...tensor, entry: names[parameter] } : tensor;
}

/** Constants come as the words that they lie in, without the padding behind them. */
export function bytesOf({ dtype, shape }: StateEntry, values: Tensor): Tensor | Uint8Array {
  if (dtype === undefined) return values;
  const { buffer } = scope(() => constantIn(values, { dtype, shape }).toTypedArray());
  return new Uint8Array(buffer as ArrayBuffer);
}
