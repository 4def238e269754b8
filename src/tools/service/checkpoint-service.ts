import type { Observable } from "rxjs";
import { TroupeError } from "../../errors/index.ts";
import { EventHub, type EventSink, type EventStream, type TroupeEvent } from "../../job/events/index.ts";
import * as checkpoints from "../../library/checkpoint/index.ts";
import { type GivenTensor, stageAll } from "./given-tensors.ts";
import type { Save } from "./save.ts";
import { SaveQueue } from "./save-queue.ts";
import {
  type CheckpointServiceOptions,
  type ServiceSettings,
  settle,
  wrongOption,
} from "./service-options.ts";
import { StagedSave } from "./staged-save.ts";
import { StagingMemory } from "./staging.ts";

/** Contents of a save. */
export interface SaveRequest {
  readonly step: number;
  /** The model's tensors by name. */
  readonly tensors: Readonly<Record<string, GivenTensor>>;
  /** The optimizer's tensors, under names that differ from the model's, such as `exp_avg.<name>`. */
  readonly optimizer?: Readonly<Record<string, GivenTensor>>;
  /** Anything else worth keeping, as JSON. */
  readonly metadata?: checkpoints.JsonObject;
  /** The model's config.json: with it the folder is a Hugging Face model folder. */
  readonly config?: checkpoints.JsonObject;
}

/**
 * Saves checkpoints of any program: `save` copies the tensors and returns at once, and a separate thread writes them. A save is
 * complete and durable, or absent.
 *
 * ```ts
 * await using service = await CheckpointService.open({ dir: "runs/mine", keepLast: 3 });
 * const save = service.save({ step: 100, tensors: { weight, bias: new Float32Array(8) } });
 * const { path } = await save.durable;
 * ```
 */
export class CheckpointService implements AsyncDisposable {
  readonly #storage: checkpoints.CheckpointStorage;
  readonly #lock: checkpoints.StorageLock;
  readonly #memory: StagingMemory;
  readonly #hub = new EventHub();
  readonly #queue: SaveQueue;
  #closing: Promise<void> | undefined;

  private constructor(
    settings: ServiceSettings,
    storage: checkpoints.CheckpointStorage,
    lock: checkpoints.StorageLock,
  ) {
    this.#storage = storage;
    this.#lock = lock;
    this.#memory = new StagingMemory(settings.stagingBytes);
    this.#queue = new SaveQueue(settings, this.#hub);
  }

  /**
   * Locks the folder or bucket, starts the writer's thread, and removes unfinished saves of earlier processes.
   * @throws {TroupeError} `OPTION`; `CHECKPOINT_LOCKED` if another process writes there; `CHECKPOINT_DIRECTORY`, `S3_UNAVAILABLE`
   *   or `S3_FAILED` if it cannot be used
   */
  static async open(options: CheckpointServiceOptions): Promise<CheckpointService> {
    const settings = settle(options);
    const storage = await checkpoints.openStorage(settings.location);
    const lock = await storage.lock("a checkpoint service");
    const service = new CheckpointService(settings, storage, lock);
    try {
      await service.#queue.start(lock.hold);
      return service;
    } catch (error) {
      await service.#queue.stop({ drain: false });
      await lock[Symbol.asyncDispose]();
      throw error;
    }
  }

  /** Address of the checkpoints. */
  get location(): string {
    return this.#storage.location;
  }

  /** Events of saves: `checkpoint.started`, `.progressed`, `.saved`, `.failed` and `.skipped`. */
  get events$(): Observable<TroupeEvent> {
    return this.#hub.events$;
  }

  /** The events of {@link events$}, for `for await`. */
  events(): EventStream {
    return this.#hub.events();
  }

  /** Sends every event from now on to a sink, which the service closes when it closes. */
  addSink(sink: EventSink): void {
    this.#hub.addSink(sink);
  }

  /**
   * Copies tensors, then writes the copies in the background. When it returns, the tensors may change.
   * @throws {TroupeError} `CHECKPOINT_STAGING` if there is no room for them; `CHECKPOINT_SLICE` for a value that is not a tensor;
   * `CHECKPOINT_INCOMPLETE` for slices that do not cover their tensor
   */
  save({ step, tensors, optimizer = {}, metadata, config }: SaveRequest): Save {
    if (this.#queue.skips) return this.#queue.skip(step);
    const staged = this.stage(step);
    try {
      stageAll(staged, "weights", tensors);
      stageAll(staged, "optimizer", optimizer);
      return this.commit(staged, { ...(metadata && { metadata }), ...(config && { config }) });
    } catch (error) {
      staged.area.release();
      throw error;
    }
  }

  /** Memory for a save whose tensors arrive in parts; pass it to {@link commit}, or return its area. */
  stage(step: number): StagedSave {
    if (this.#closing !== undefined) throw closed();
    if (!Number.isSafeInteger(step) || step < 0) throw wrongOption("step", "a whole number", step);
    return new StagedSave(step, this.#memory.open());
  }

  /**
   * Writes staged tensors; their memory now belongs to the service.
   * @throws {TroupeError} `CHECKPOINT_INCOMPLETE` if some are incomplete; the memory then still belongs to the caller
   */
  commit(
    staged: StagedSave,
    { metadata = {}, config = {} }: Pick<SaveRequest, "metadata" | "config"> = {},
  ): Save {
    const { step, area } = staged;
    const tensors = staged.complete();
    if (this.#closing !== undefined) throw closed();
    if (this.#queue.skips) {
      area.release();
      return this.#queue.skip(step);
    }
    return this.#queue.add({ step, area, tensors, metadata, config });
  }

  /** Resolves when no save is running or waiting. */
  async idle(): Promise<void> {
    await this.#queue.idle();
  }

  /** The checkpoints, newest first. */
  list(): Promise<readonly checkpoints.CheckpointFacts[]> {
    return checkpoints.listCheckpoints(this.#storage);
  }

  /** Reads every byte of a checkpoint and returns all damage. */
  async verify(step: number): Promise<readonly checkpoints.Damage[]> {
    await this.#folderOf(step);
    return checkpoints.verifyCheckpoint(this.#storage, checkpoints.stepFolder(step));
  }

  /**
   * Opens a checkpoint for reading, by default the newest complete one; the caller disposes of it.
   * @throws {TroupeError} `CHECKPOINT_MISSING`, `CHECKPOINT_DAMAGED`
   */
  async read(step?: number): Promise<checkpoints.Checkpoint> {
    if (step === undefined) return checkpoints.openCheckpoint(this.#storage);
    return checkpoints.Checkpoint.open(await this.#folderOf(step));
  }

  /** Waits for pending saves, then ends the writer's thread. */
  async close(): Promise<void> {
    this.#closing ??= this.#end();
    await this.#closing;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  async #folderOf(step: number): Promise<checkpoints.StoredFolder> {
    const name = checkpoints.stepFolder(step);
    if ((await this.#storage.list()).includes(name)) return this.#storage.open(name);
    throw new TroupeError("CHECKPOINT_MISSING", {
      where: "checkpoint service",
      expected: `a checkpoint of step ${step} in ${this.location}`,
      got: "none",
      hint: "list() returns those that exist",
      fields: { path: this.location, step },
    });
  }

  async #end(): Promise<void> {
    await this.#queue.stop();
    await this.#lock[Symbol.asyncDispose]();
    await this.#hub.close();
  }
}

function closed(): TroupeError {
  return new TroupeError("SYSTEM_STOPPED", {
    where: "checkpoint service",
    expected: "an open service",
    got: "a closed one",
    hint: "open another",
  });
}
