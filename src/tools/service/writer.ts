import { TroupeError } from "../../errors/index.ts";
import {
  CheckpointDraft,
  type CheckpointStorage,
  type Damage,
  type JsonObject,
  type KeepRule,
  openStorage,
  pruneAfterSave,
  stepFolder,
  verifyCheckpoint,
} from "../../library/checkpoint/index.ts";
import { type ActorContext, defineActor } from "../../runtime/index.ts";
import type { StagedTensor, TensorGroup } from "./staged-save.ts";

/** A checkpoint to write; the bytes of its tensors are in memory shared by both threads. Plain data. */
export interface WriteOrder {
  readonly step: number;
  readonly tensors: readonly StagedTensor[];
  /** The program's own data, as JSON. */
  readonly metadata: JsonObject;
  /** The model's config.json. */
  readonly config: JsonObject;
}

/** A durable checkpoint. */
export interface Written {
  readonly path: string;
  readonly sizeBytes: number;
  readonly durationMs: number;
  /** Whether it was read back and compared. */
  readonly verified: boolean;
}

/** Progress of a checkpoint, emitted a few times per second. Plain data. */
export interface WriteProgress {
  readonly kind: "checkpoint.progressed";
  readonly step: number;
  readonly writtenBytes: number;
  readonly totalBytes: number;
}

/** Writes one checkpoint at a time. A failed save leaves no files, and the writer is ready for the next. */
export type WriterProtocol = { write: { in: WriteOrder; out: Written } };

/** Initial data of a writer. */
export interface WriterInit {
  readonly location: string;
  /** Proof of the service's lock on the storage. */
  readonly hold: string;
  readonly keep: KeepRule | undefined;
  /** Whether each checkpoint is read back before it counts as saved. */
  readonly verify: boolean;
}

const pieceBytes = 32 << 20;
const progressEveryMs = 100;

export default defineActor<WriterProtocol, WriterInit>({
  async start(context, { location, hold, keep, verify }) {
    const storage = await openStorage(location, { hold });
    await storage.sweep();
    return {
      handlers: {
        async write(order) {
          const begin = performance.now();
          const written = await write(context, storage, order);
          if (verify)
            await refuseDamaged(storage, order.step, await verifyCheckpoint(storage, stepFolder(order.step)));
          // Not before: if the new one is refused, an older one is still there.
          if (keep !== undefined) await pruneAfterSave(storage, keep);
          return { ...written, durationMs: performance.now() - begin, verified: verify };
        },
      },
    };
  },
});

async function write(
  context: ActorContext<WriterProtocol>,
  storage: CheckpointStorage,
  { step, tensors, metadata, config }: WriteOrder,
): Promise<{ path: string; sizeBytes: number }> {
  const ofGroup = (group: TensorGroup) => tensors.filter((tensor) => tensor.group === group);
  const plan = { step, config, weights: ofGroup("weights"), optimizer: ofGroup("optimizer") };
  await using draft = await CheckpointDraft.begin(storage, plan);
  const places = new Map(tensors.map((tensor) => [tensor.name, tensor]));
  const { plannedBytes: totalBytes } = draft;
  let reportedAtMs = Number.NEGATIVE_INFINITY;
  const report = (writtenBytes: number) => {
    if (writtenBytes !== totalBytes && performance.now() - reportedAtMs < progressEveryMs) return;
    reportedAtMs = performance.now();
    context.emit({ kind: "checkpoint.progressed", step, writtenBytes, totalBytes } satisfies WriteProgress);
  };
  for (const name of draft.order) {
    const { memory, begin, sizeBytes } = places.get(name) as StagedTensor;
    for (let at = 0; at < sizeBytes; at += pieceBytes) {
      await draft.write(name, new Uint8Array(memory, begin + at, Math.min(pieceBytes, sizeBytes - at)));
      report(draft.writtenBytes);
    }
  }
  const state = { step, seed: 0, samplesConsumed: 0, job: null, tokenizer: null, metadata };
  const { path, sizeBytes } = await draft.commit(state);
  return { path, sizeBytes };
}

/** Removes a checkpoint that does not read back as written: none is better than a damaged one. */
async function refuseDamaged(
  storage: CheckpointStorage,
  step: number,
  damages: readonly Damage[],
): Promise<void> {
  const [first] = damages;
  if (first === undefined) return;
  await storage.remove(stepFolder(step));
  throw new TroupeError("CHECKPOINT_DAMAGED", {
    where: "checkpoint service",
    expected: `to read step ${step} as it was written`,
    got: `"${first.message}" and ${damages.length - 1} more`,
    hint: "the disk or its memory fails",
    fields: { ...first, step },
  });
}
