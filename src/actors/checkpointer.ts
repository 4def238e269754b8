import { randomUUID } from "node:crypto";
import { TroupeError } from "../errors/index.ts";
import * as checkpoints from "../library/checkpoint/index.ts";
import { defineActor } from "../runtime/index.ts";
import type * as protocol from "./protocols/index.ts";
import {
  heldState,
  KeptCopy,
  lowerPriority,
  type PartCollection,
  PartCollector,
  writeParts,
  writersMark,
  writeShares,
} from "./state/saving/index.ts";
import { withParts } from "./with-parts.ts";

export default defineActor<protocol.CheckpointerProtocol, protocol.CheckpointerInit>({
  lanes: { part: "control", progress: "control" },
  concurrent: ["save", "name", "readStored"],
  async start(context, { directory, hold, keep, held }) {
    lowerPriority();
    const storage = directory === undefined ? undefined : await openDirectory(directory, hold);
    const checkpointer = new Checkpointer(storage, keep, (progress) => context.emit(progress));
    const { parts, kept } = checkpointer;
    if (held !== undefined) kept.replace(...heldState(held));
    return {
      handlers: {
        begin: ({ generation }) => parts.begin(generation),
        save: (order) => checkpointer.save(order),
        part: (part) => parts.add(part),
        progress: (progress) => parts.setProgress(progress),
        name: ({ step, named }) => checkpointer.name(step, named),
        mark: () => checkpointer.mark(),
        readStored: (asked) => checkpoints.readForOthers(asked),
        hold: (weights) => {
          kept.replace(...heldState(weights));
          return {};
        },
        kept: () => ({ state: kept.state }),
        restore: (request) => ({ values: kept.restore(request) }),
      },
      stop: () => checkpointer[Symbol.dispose](),
    };
  },
});

/** The result of a save, before its duration is known. */
type Outcome = Pick<protocol.Saved, "path" | "sizeBytes"> & Partial<protocol.Saved>;

/** Saves to disk, into memory or both, one save after the other. */
class Checkpointer implements Disposable {
  readonly parts = new PartCollector();
  readonly kept = new KeptCopy();
  /** Undefined if nothing is written to a folder. */
  readonly #storage: checkpoints.CheckpointStorage | undefined;
  readonly #keep: checkpoints.KeepRule | undefined;
  readonly #report: (progress: protocol.SaveProgress) => void;
  #last: Promise<unknown> = Promise.resolve();

  constructor(
    storage: checkpoints.CheckpointStorage | undefined,
    keep: checkpoints.KeepRule | undefined,
    report: (progress: protocol.SaveProgress) => void,
  ) {
    this.#storage = storage;
    this.#keep = keep;
    this.#report = report;
  }

  async save(order: protocol.SaveOrder): Promise<protocol.Saved> {
    const begin = performance.now();
    const { generation, numParts, state } = order;
    return await withParts(this.parts, { generation, numParts, step: state.step }, async (collection) => {
      const saved = await this.#inTurn(() => this.#perform(order, collection));
      return { blockedMs: collection.blockedMs, ...saved, durationMs: performance.now() - begin };
    });
  }

  async name(step: number, named: checkpoints.StateName): Promise<Record<string, never>> {
    const storage = this.#storage;
    if (storage !== undefined) await this.#inTurn(() => checkpoints.nameState(storage, named, step));
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

  /** Runs `work` on the folder after the work before it, which may be an earlier generation's save about to name a state. */
  #inTurn<T>(work: () => Promise<T>): Promise<T> {
    const done = this.#last.then(work);
    this.#last = done.catch(() => {});
    return done;
  }

  async #perform(order: protocol.SaveOrder, collection: PartCollection): Promise<Outcome> {
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
  async #copy(order: protocol.SaveOrder, collection: PartCollection): Promise<Outcome> {
    const progress = await collection.complete(order.numParts);
    const { sizeBytes } = collection.image;
    if (order.keep) this.kept.replace({ step: collection.step, progress, sizeBytes }, collection.take());
    return { path: undefined, sizeBytes };
  }
}

async function openDirectory(
  directory: string,
  hold: string | undefined,
): Promise<checkpoints.CheckpointStorage> {
  try {
    const storage = await checkpoints.openStorage(directory, { hold });
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
