import { type EventHub, reportError } from "../../job/events/index.ts";
import type { JsonObject } from "../../library/checkpoint/index.ts";
import { type ActorRef, ActorSystem, AskTimeout, type RuntimeEvent } from "../../runtime/index.ts";
import { Save } from "./save.ts";
import type { ServiceSettings } from "./service-options.ts";
import type { StagedTensor } from "./staged-save.ts";
import type { StagingArea } from "./staging.ts";
import type { WriteOrder, WriteProgress, WriterInit, WriterProtocol, Written } from "./writer.ts";

/** Tensors that are whole, and the memory in which they wait. */
export interface QueuedSave {
  readonly step: number;
  readonly area: StagingArea;
  readonly tensors: readonly StagedTensor[];
  readonly metadata: JsonObject;
  readonly config: JsonObject;
}

/**
 * Lets saves be written one after the other, in the order in which they came, by a writer on a thread of its own, and tells
 * what becomes of them. A writer that dies fails the save it was at; the next has a new one.
 */
export class SaveQueue {
  readonly #settings: ServiceSettings;
  readonly #hub: EventHub;
  readonly #system: ActorSystem;
  #writer: ActorRef<WriterProtocol> | undefined;
  /** The save that is being written, and those that wait, in order. */
  readonly #saves: Save[] = [];
  #last: Promise<unknown> = Promise.resolve();
  #numSkipped = 0;

  constructor(settings: ServiceSettings, hub: EventHub) {
    this.#settings = settings;
    this.#hub = hub;
    this.#system = new ActorSystem({ name: "checkpoint service", onEvent: (event) => this.#hear(event) });
  }

  /** Starts the writer's thread; it removes what saves of an earlier process left unfinished. @param hold - of the place's lock */
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
      // Given up: every further save fails and says so.
      onEscalate: () => {},
    });
    this.#writer = supervisor.ref<WriterProtocol>("checkpoint-writer");
  }

  /** Whether one more save is to be left out, because another is being written. */
  get skips(): boolean {
    return this.#settings.whenBusy === "skip" && this.#saves.length > 0;
  }

  /** Leaves a save out, and tells. */
  skip(step: number): Save {
    this.#numSkipped += 1;
    const reason = `step ${this.#saves[0]?.step} is being written`;
    this.#hub.emit({ kind: "checkpoint.skipped", step, reason, numSkipped: this.#numSkipped });
    return new Save(step, Promise.resolve(undefined));
  }

  /** Has a save written after those before it, and gives its memory back then. */
  add({ area, ...content }: QueuedSave): Save {
    const work = this.#last
      .then(() => this.#write(content))
      .then(
        (written) => {
          area.release();
          return written;
        },
        (error: unknown) => {
          // A writer that is only late still reads the memory: it is never given to another save.
          if (!(error instanceof AskTimeout)) area.release();
          throw error;
        },
      );
    const save = new Save(content.step, work);
    this.#saves.push(save);
    this.#last = work.then(
      () => this.#saves.shift(),
      () => this.#saves.shift(),
    );
    return save;
  }

  /** Resolves when nothing is being written and nothing waits. */
  async idle(): Promise<void> {
    await this.#last;
  }

  /** Ends the writer's thread once nothing waits, or at once. */
  async stop(options: { readonly drain: boolean } = { drain: true }): Promise<void> {
    if (options.drain) await this.#last;
    await this.#system.stop(options);
  }

  async #write(order: WriteOrder): Promise<Written> {
    const { step, tensors } = order;
    const stagedBytes = tensors.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0);
    // Nobody stands still for a save: what waits is a copy.
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

  /** Passes progress on, once: what an actor emits may come later than its answer. */
  #progress({ step, writtenBytes, totalBytes }: Omit<WriteProgress, "kind">): void {
    const [writing] = this.#saves;
    if (writing?.step !== step || writing.writtenBytes >= writtenBytes) return;
    writing.report({ writtenBytes, totalBytes });
    this.#hub.emit({ kind: "checkpoint.progressed", step, writtenBytes, totalBytes });
  }
}
