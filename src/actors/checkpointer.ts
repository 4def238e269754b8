import { mkdir } from "node:fs/promises";
import {
  type CheckpointStorage,
  type JsonObject,
  type KeepRule,
  LocalFolder,
  openStorage,
  type TrainerState,
} from "../checkpoint/index.ts";
import { TroupeError } from "../errors.ts";
import type { OptimizerProgress } from "../optim/index.ts";
import type { Piece } from "../parallel/index.ts";
import { defineActor } from "../runtime/index.ts";
import {
  entryName,
  giveWay,
  PartCollection,
  type SavePlan,
  type SaveProgress,
  type StateImage,
  writeParts,
} from "../state/saving/index.ts";
import { releaseRef, shareRef, type TensorRef } from "../tensor/index.ts";

/** A save that is about to be fed. Plain data. */
export interface SaveOrder extends SavePlan {
  /** Life of the rank group that feeds it. */
  readonly life: number;
  /** config.json of the model; empty where it has none. */
  readonly modelConfig: JsonObject;
  /** What a run needs to go on, beside tensors; how far the optimizer has come, the shards tell. */
  readonly state: TrainerState;
  /** Whether it goes to the disk. */
  readonly write: boolean;
  /** Whether it stays in memory, in place of the one before. */
  readonly keep: boolean;
}

/** One rank's share of one block's state, after `step` updates; the tensors are copies and the receiver's. */
export interface SavePart {
  readonly life: number;
  readonly step: number;
  /** Whose share it is. */
  readonly rank: number;
  /** For how long copying it held training up: updates waited for it, or the event loop of who keeps it was busy with it. */
  readonly blockedMs: number;
  /** The master first, then what the optimizer keeps. */
  readonly state: readonly {
    readonly kind: string;
    readonly ref: TensorRef;
    readonly pieces: readonly Piece[];
  }[];
}

/** A save that is done. */
export interface Saved {
  /** Where on the disk; undefined where it is in memory only. */
  readonly path: string | undefined;
  readonly sizeBytes: number;
  readonly durationMs: number;
  /** For how long copying held that rank up that was held up most. */
  readonly blockedMs: number;
}

/** A whole state that is kept in memory. */
export interface KeptState {
  /** Updates it has seen. */
  readonly step: number;
  readonly progress: OptimizerProgress;
  readonly sizeBytes: number;
}

/** What an actor wants of a kept state. Plain data. */
export interface RestoreRequest {
  /** Updates it has seen. */
  readonly step: number;
  /** Any pieces, of any layout. */
  readonly wanted: readonly { readonly kind: string; readonly pieces: readonly Piece[] }[];
  /** Whose the tensors are until they are attached. */
  readonly owner: string;
}

/**
 * Saves one step at a time: `save` announces it, the shards send their parts in any order while training goes on, and
 * `save` is answered when the folder is durable under its final name, or the copy in memory whole. A save that fails
 * leaves nothing behind, and the checkpointer ready for the next. What an earlier life of the rank group began and could
 * not finish is given up; what it finished in memory stays.
 */
export type CheckpointerProtocol = {
  /** The rank group lives anew: saves of earlier lives are refused from here on. */
  begin: { in: { life: number } };
  save: { in: SaveOrder; out: Saved };
  part: { in: SavePart };
  /** How far the optimizer has come after `step` steps: a save is not whole without it. */
  progress: { in: { life: number; step: number; progress: OptimizerProgress } };
  /** The state that is kept in memory, if any. */
  kept: { in: Record<string, never>; out: { state: KeptState | undefined } };
  /** Values of a kept state, for each wanted tensor piece by piece, flat: shared, to be read only. */
  restore: { in: RestoreRequest; out: { values: readonly (readonly TensorRef[])[] } };
};

/** What a checkpointer is born with. */
export interface CheckpointerInit {
  /** Folder of the run's checkpoints, made where it is not there, or a store such as `s3://bucket/prefix`; undefined: all is kept in memory only. */
  readonly directory: string | undefined;
  /** Which of them are kept once a new one is durable; all where left out. */
  readonly keep?: KeepRule | undefined;
}

export default defineActor<CheckpointerProtocol, CheckpointerInit>({
  lanes: { part: "control", progress: "control" },
  concurrent: ["save"],
  async start(context, { directory, keep }) {
    giveWay();
    const storage = directory === undefined ? undefined : await openDirectory(directory);
    let collection = new PartCollection(0, -1);
    let kept: KeptCopy | undefined;
    let last: Promise<unknown> = Promise.resolve();
    const collectionOf = (life: number, step: number) => {
      if (collection.life !== life || collection.step !== step) {
        collection.abandon();
        collection = new PartCollection(life, step);
      }
      return collection;
    };
    const replaceKept = (copy: KeptCopy | undefined) => {
      kept?.image[Symbol.dispose]();
      kept = copy;
    };
    const save = async (
      order: SaveOrder,
      mine: PartCollection,
    ): Promise<Omit<Saved, "durationMs" | "blockedMs">> => {
      const copied = mine.whole(order.numParts).then((progress) => {
        const { sizeBytes } = mine.image;
        const state = { step: mine.step, progress, sizeBytes };
        if (order.keep) replaceKept({ state, image: mine.take() });
        return { path: undefined, sizeBytes };
      });
      // Whoever waits hears of it.
      copied.catch(() => {});
      const tell = (told: SaveProgress) => context.emit(told);
      const written = order.write && storage ? writeParts({ storage, keep, tell }, order, mine) : copied;
      // A copy in memory is as good where the disk is full.
      const [saved] = await Promise.allSettled([written, order.keep ? copied : undefined]);
      if (saved.status === "rejected") throw saved.reason;
      return saved.value;
    };
    return {
      handlers: {
        begin({ life }) {
          collectionOf(life, -1);
        },
        async save(order) {
          const begin = performance.now();
          using mine = collectionOf(order.life, order.state.step);
          // What an earlier life has begun to write may not have ended yet.
          await last;
          const saving = save(order, mine);
          last = saving.catch(() => {});
          const saved = await saving;
          // The same step may be saved once more, for instance to the disk after a copy in memory.
          if (collection === mine) collection = new PartCollection(order.life, -1);
          return { ...saved, durationMs: performance.now() - begin, blockedMs: mine.blockedMs };
        },
        part(part) {
          if (part.life < collection.life) for (const { ref } of part.state) releaseRef(ref);
          else collectionOf(part.life, part.step).add(part);
        },
        progress({ life, step, progress }) {
          if (life >= collection.life) collectionOf(life, step).setProgress(progress);
        },
        kept: () => ({ state: kept?.state }),
        restore: (request) => ({ values: restored(kept, request) }),
      },
      stop() {
        collection.abandon();
        replaceKept(undefined);
      },
    };
  },
});

/** A state in memory, and what it is. */
interface KeptCopy {
  readonly state: KeptState;
  readonly image: StateImage;
}

/** @throws {TroupeError} `MEMORY_COPY_LOST` where another step is kept, or not all that is wanted */
function restored(kept: KeptCopy | undefined, { step, wanted, owner }: RestoreRequest): TensorRef[][] {
  if (kept?.state.step !== step)
    throw notKept(step, `${kept === undefined ? "none" : `step ${kept.state.step}`}`);
  const refs: TensorRef[][] = [];
  try {
    for (const { kind, pieces } of wanted) {
      const ofKind: TensorRef[] = [];
      refs.push(ofKind);
      for (const piece of pieces) {
        const values = kept.image.piece(kind, piece);
        if (values === undefined) throw notKept(step, `no ${entryName(kind, piece.parameter.name)}`);
        ofKind.push(shareRef(values, { owner }));
        values.dispose();
      }
    }
    return refs;
  } catch (error) {
    for (const ref of refs.flat()) releaseRef(ref);
    throw error;
  }
}

function notKept(step: number, got: string): TroupeError {
  return new TroupeError(
    "MEMORY_COPY_LOST",
    `[checkpoint] expected the state of step ${step} in memory: got ${got} (go on from a checkpoint)`,
    { fields: { step } },
  );
}

async function openDirectory(directory: string): Promise<CheckpointStorage> {
  try {
    const storage = await openStorage(directory);
    // Rather now than at the first save.
    if (storage instanceof LocalFolder) await mkdir(directory, { recursive: true });
    await storage.sweep();
    return storage;
  } catch (cause) {
    throw new TroupeError(
      "CHECKPOINT_DIRECTORY",
      `[checkpoint] expected a folder that can be written at ${directory}: got "${(cause as Error).message}" (give another with --checkpoint)`,
      { fields: { directory }, cause },
    );
  }
}
