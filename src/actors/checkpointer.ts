import { randomUUID } from "node:crypto";
import { type CheckpointStorage, openStorage, readForOthers } from "../checkpoint/index.ts";
import { TroupeError } from "../errors.ts";
import type {
  CheckpointerInit,
  CheckpointerProtocol,
  KeptState,
  RestoreRequest,
  Saved,
  SaveOrder,
  SaveProgress,
  SpreadSave,
} from "../protocols/index.ts";
import { defineActor } from "../runtime/index.ts";
import {
  entryName,
  lowerPriority,
  PartCollection,
  type StateImage,
  writeParts,
  writersMark,
  writeShares,
} from "../state/saving/index.ts";
import { releaseRef, shareRef, type TensorRef } from "../tensor/index.ts";

export default defineActor<CheckpointerProtocol, CheckpointerInit>({
  lanes: { part: "control", progress: "control" },
  concurrent: ["save", "readStored"],
  async start(context, { directory, keep }) {
    lowerPriority();
    const storage = directory === undefined ? undefined : await openDirectory(directory);
    let collection = new PartCollection(0, -1);
    let kept: KeptCopy | undefined;
    let last: Promise<unknown> = Promise.resolve();
    const collectionOf = (generation: number, step: number) => {
      if (collection.generation !== generation || collection.step !== step) {
        collection.abandon();
        collection = new PartCollection(generation, step);
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
      const report = (progress: SaveProgress) => context.emit(progress);
      const written = order.write && storage ? writeParts({ storage, keep, report }, order, mine) : copied;
      // A copy in memory is as good where the disk is full.
      const [saved] = await Promise.allSettled([written, order.keep ? copied : undefined]);
      if (saved.status === "rejected") throw saved.reason;
      return saved.value;
    };
    const saveShares = (order: SaveOrder, spread: SpreadSave) => {
      if (storage === undefined) throw new Error("writers are given where there is a folder");
      const report = (progress: SaveProgress) => context.emit(progress);
      return writeShares({ storage, keep, report }, order, spread);
    };
    return {
      handlers: {
        begin({ generation }) {
          // Its parts overtake this word where they come first to a thread that gives way to others: they are kept.
          if (generation > collection.generation) collectionOf(generation, -1);
        },
        async save(order) {
          const begin = performance.now();
          using mine = collectionOf(order.generation, order.state.step);
          // What an earlier generation has begun to write may not have ended yet.
          await last;
          const saving = order.spread === undefined ? save(order, mine) : saveShares(order, order.spread);
          last = saving.catch(() => {});
          const saved = await saving;
          // The same step may be saved once more, for instance to the disk after a copy in memory.
          if (collection === mine) collection = new PartCollection(order.generation, -1);
          return { blockedMs: mine.blockedMs, ...saved, durationMs: performance.now() - begin };
        },
        part(part) {
          if (part.generation < collection.generation) for (const { ref } of part.state) releaseRef(ref);
          else collectionOf(part.generation, part.step).add(part);
        },
        progress({ generation, step, progress }) {
          if (generation >= collection.generation) collectionOf(generation, step).setProgress(progress);
        },
        async mark() {
          if (storage === undefined) return { mark: undefined };
          const mark = randomUUID();
          await storage.writeText(writersMark, mark);
          return { mark };
        },
        readStored: (asked) => readForOthers(asked),
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
    {
      where: "checkpoint",
      expected: `the state of step ${step} in memory`,
      got,
      hint: "go on from a checkpoint",
    },
    { fields: { step } },
  );
}

async function openDirectory(directory: string): Promise<CheckpointStorage> {
  try {
    // The run has made it, and locked it.
    const storage = await openStorage(directory, { isMade: false });
    await storage.sweep();
    return storage;
  } catch (cause) {
    throw new TroupeError(
      "CHECKPOINT_DIRECTORY",
      {
        where: "checkpoint",
        expected: `a folder that can be written at ${directory}`,
        got: `"${(cause as Error).message}"`,
        hint: "give another with --checkpoint",
      },
      { fields: { directory }, cause },
    );
  }
}
