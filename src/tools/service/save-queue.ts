import { type EventHub, reportError } from "../../job/events/index.ts";
import { type ActorRef, ActorSystem, AskTimeout, type RuntimeEvent } from "../../runtime/index.ts";
import { Save } from "./save.ts";
import type { ServiceSettings } from "./service-options.ts";
import type { StagingArea } from "./staging.ts";
import type { WriteOrder, WriteProgress, WriterInit, WriterProtocol, Written } from "./writer.ts";

/** Complete tensors, and the memory that holds them. */
export interface QueuedSave extends WriteOrder {
  readonly area: StagingArea;
}

/**
 * Writes saves one after the other, in order, on a writer's own thread, and emits events about them. If the writer dies, its save
 * fails and the next one gets a new writer.
 */
export class SaveQueue {
  readonly #settings: ServiceSettings;
  readonly #hub: EventHub;
  readonly #system: ActorSystem;
  #writer: ActorRef<WriterProtocol> | undefined;
  /** The running save, then the waiting ones, in order. */
  readonly #saves: Save[] = [];
  #last: Promise<unknown> = Promise.resolve();
  #numSkipped = 0;

  constructor(settings: ServiceSettings, hub: EventHub) {
    this.#settings = settings;
    this.#hub = hub;
    this.#system = new ActorSystem({ name: "checkpoint service", onEvent: (event) => this.#hear(event) });
  }

  /** Starts the writer's thread, which removes unfinished saves of earlier processes. @param hold - proof of the lock on the storage */
  async start(hold: string): Promise<void> {
    const { location, keep, verify } = this.#settings;
    const supervisor = await this.#system.supervise({
      name: "saving",
      strategy: "one_for_one",
      backoff: { firstMs: 100, maxMs: 5_000 },
      children: [
        {
          name: "checkpoint-writer",
          module: new URL("./writer.ts", import.meta.url),
          init: (): WriterInit => ({ location, hold, keep, verify }),
        },
      ],
      // No more restarts: every further save fails with that error.
      onEscalate: () => {},
    });
    this.#writer = supervisor.ref<WriterProtocol>("checkpoint-writer");
  }

  /** Whether the next save is skipped because another is running. */
  get skips(): boolean {
    return this.#settings.whenBusy === "skip" && this.#saves.length > 0;
  }

  /** Skips a save and emits that. */
  skip(step: number): Save {
    this.#numSkipped += 1;
    const reason = `step ${this.#saves[0]?.step} is being written`;
    this.#hub.emit({ kind: "checkpoint.skipped", step, reason, numSkipped: this.#numSkipped });
    return new Save(step, Promise.resolve(undefined));
  }

  /** Queues a save; its memory is released after it was written. */
  add({ area, ...content }: QueuedSave): Save {
    const work = this.#last.then(async () => {
      let isRead = false;
      try {
        return await this.#write(content);
      } catch (error) {
        // After a timeout the writer may still read the memory, so no other save may get it.
        isRead = error instanceof AskTimeout;
        throw error;
      } finally {
        if (!isRead) area.release();
      }
    });
    const save = new Save(content.step, work);
    this.#saves.push(save);
    const shift = () => this.#saves.shift();
    this.#last = work.then(shift, shift);
    return save;
  }

  /** Resolves when no save is running or waiting. */
  async idle(): Promise<void> {
    await this.#last;
  }

  /** Ends the writer's thread, after all waiting saves or at once. */
  async stop(options: { readonly drain: boolean } = { drain: true }): Promise<void> {
    if (options.drain) await this.#last;
    await this.#system.stop(options);
  }

  async #write(order: WriteOrder): Promise<Written> {
    const { step, tensors } = order;
    const stagedBytes = tensors.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0);
    // The caller never waits: the save uses copies.
    this.#hub.emit({ kind: "checkpoint.started", step, stagedBytes, waitedMs: 0 });
    try {
      const writer = this.#writer as ActorRef<WriterProtocol>;
      const written = await writer.ask("write", order, { deadlineMs: this.#settings.saveDeadlineMs });
      this.#progress({ step, writtenBytes: stagedBytes, totalBytes: stagedBytes });
      const { path, sizeBytes, durationMs } = written;
      this.#hub.emit({ kind: "checkpoint.saved", step, path, sizeBytes, durationMs });
      return written;
    } catch (error) {
      this.#hub.emit({ kind: "checkpoint.failed", step, error: reportError(error) });
      throw error;
    }
  }

  #hear(event: RuntimeEvent): void {
    if (event.kind !== "actor.emitted") return;
    const progress = event.event as WriteProgress;
    if (progress.kind === "checkpoint.progressed") this.#progress(progress);
  }

  /** Emits progress unless it is not new: an actor's event may arrive after its answer. */
  #progress({ step, writtenBytes, totalBytes }: Omit<WriteProgress, "kind">): void {
    const [writing] = this.#saves;
    if (writing?.step !== step || writing.writtenBytes >= writtenBytes) return;
    writing.report({ writtenBytes, totalBytes });
    this.#hub.emit({ kind: "checkpoint.progressed", step, writtenBytes, totalBytes });
  }
}
