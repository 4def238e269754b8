import { randomUUID } from "node:crypto";
import { TroupeError } from "../errors/index.ts";
import {
  type CheckpointStorage,
  type KeepRule,
  nameState,
  openStorage,
  readForOthers,
  type StateName,
} from "../library/checkpoint/index.ts";
import { defineActor } from "../runtime/index.ts";
import type {
  CheckpointerInit,
  CheckpointerProtocol,
  Saved,
  SaveOrder,
  SaveProgress,
} from "./protocols/index.ts";
import {
  KeptCopy,
  lowerPriority,
  type PartCollection,
  PartCollector,
  writeParts,
  writersMark,
  writeShares,
} from "./state/saving/index.ts";

export default defineActor<CheckpointerProtocol, CheckpointerInit>({
  lanes: { part: "control", progress: "control" },
  concurrent: ["save", "name", "readStored"],
  async start(context, { directory, hold, keep }) {
    lowerPriority();
    const storage = directory === undefined ? undefined : await openDirectory(directory, hold);
    const checkpointer = new Checkpointer(storage, keep, (progress) => context.emit(progress));
    const { parts, kept } = checkpointer;
    return {
      handlers: {
        begin: ({ generation }) => parts.begin(generation),
        save: (order) => checkpointer.save(order),
        part: (part) => parts.add(part),
        progress: (progress) => parts.setProgress(progress),
        name: ({ step, named }) => checkpointer.name(step, named),
        mark: () => checkpointer.mark(),
        readStored: (asked) => readForOthers(asked),
        kept: () => ({ state: kept.state }),
        restore: (request) => ({ values: kept.restore(request) }),
      },
      stop: () => checkpointer[Symbol.dispose](),
    };
  },
});

/** The result of a save, before its duration is known. */
type Outcome = Pick<Saved, "path" | "sizeBytes"> & Partial<Saved>;

/** Saves to disk, into memory or both, one save after the other. */
class Checkpointer implements Disposable {
  readonly parts = new PartCollector();
  readonly kept = new KeptCopy();
  /** Undefined if nothing is written to a folder. */
  readonly #storage: CheckpointStorage | undefined;
  readonly #keep: KeepRule | undefined;
  readonly #report: (progress: SaveProgress) => void;
  #last: Promise<unknown> = Promise.resolve();

  constructor(
    storage: CheckpointStorage | undefined,
    keep: KeepRule | undefined,
    report: (progress: SaveProgress) => void,
  ) {
    this.#storage = storage;
    this.#keep = keep;
    this.#report = report;
  }

  async save(order: SaveOrder): Promise<Saved> {
    const begin = performance.now();
    using collection = this.parts.of(order.generation, order.state.step);
    const saved = await this.#inTurn(() => this.#perform(order, collection));
    this.parts.close(collection);
    return { blockedMs: collection.blockedMs, ...saved, durationMs: performance.now() - begin };
  }

  async name(step: number, named: StateName): Promise<Record<string, never>> {
    const storage = this.#storage;
    if (storage !== undefined) await this.#inTurn(() => nameState(storage, named, step));
    return {};
  }

  async mark(): Promise<{ mark: string | undefined }> {
    if (this.#storage === undefined) return { mark: undefined };
    const mark = randomUUID();
    await this.#storage.writeText(writersMark, mark);
    return { mark };
  }

  [Symbol.dispose](): void {
    this.parts[Symbol.dispose]();
    this.kept[Symbol.dispose]();
  }

  /**
   * Runs `work` on the folder once the work before it has ended, which may be a save of an earlier generation. Of two saves at
   * once, one would remove the state that the other is about to name.
   */
  #inTurn<T>(work: () => Promise<T>): Promise<T> {
    const done = this.#last.then(work);
    this.#last = done.catch(() => {});
    return done;
  }

  async #perform(order: SaveOrder, collection: PartCollection): Promise<Outcome> {
    const storage = this.#storage;
    const writing = storage && { storage, keep: this.#keep, report: this.#report };
    if (order.spread !== undefined) {
      if (writing === undefined) throw new Error("writers are given where there is a folder");
      return writeShares(writing, order, order.spread);
    }
    const copied = this.#copy(order, collection);
    // Rejection is delivered where the copy is awaited.
    copied.catch(() => {});
    const written = order.write && writing ? writeParts(writing, order, collection) : copied;
    // A copy in memory is as good if the disk is full.
    const [saved] = await Promise.allSettled([written, order.keep ? copied : undefined]);
    if (saved.status === "rejected") throw saved.reason;
    return saved.value;
  }

  /** Waits for every part, and keeps them in memory if ordered. */
  async #copy(order: SaveOrder, collection: PartCollection): Promise<Outcome> {
    const progress = await collection.complete(order.numParts);
    const { sizeBytes } = collection.image;
    if (order.keep) this.kept.replace({ step: collection.step, progress, sizeBytes }, collection.take());
    return { path: undefined, sizeBytes };
  }
}

async function openDirectory(directory: string, hold: string | undefined): Promise<CheckpointStorage> {
  try {
    const storage = await openStorage(directory, { hold });
    await storage.sweep();
    return storage;
  } catch (cause) {
    throw new TroupeError("CHECKPOINT_DIRECTORY", {
      where: "checkpoint",
      expected: `a folder that can be written at ${directory}`,
      got: `"${(cause as Error).message}"`,
      hint: "give another with --checkpoint",
      fields: { directory },
      cause,
    });
  }
}
