import type { TroupeError } from "../../../errors/index.ts";
import { adapterConfigName } from "../format/adapter-folder.ts";
import {
  encodeManifest,
  manifestName,
  maxChunkBytes,
  parseManifest,
  type TrainerState,
} from "../format/manifest.ts";
import { generationConfigName, type ModelTexts } from "../format/model-texts.ts";
import { defaultMaxFileBytes, indexOf } from "../format/numbered-files.ts";
import { stepFolder } from "../format/step-folder.ts";
import type { JsonObject } from "../format/strict-json.ts";
import { nameState, type StateName } from "../reading/named-states.ts";
import { runOf } from "../reading/run-record.ts";
import type { Bytes } from "../storage/bytes.ts";
import type { CheckpointStorage, FileSums, StorageDraft } from "../storage/storage.ts";
import { CHUNK_BYTES } from "../storage/summed-file.ts";
import { checkRule, type KeepRule, type Pruned, pruneAfterSave, wrongOption } from "./prune.ts";
import { saveFailed } from "./save-failed.ts";
import {
  type FileSizes,
  joinedTensors,
  type PlannedTensors,
  TensorFiles,
  type WrittenTensors,
  weightsStem,
} from "./tensor-files.ts";

/** The content of a checkpoint, before its bytes are there. */
export interface CheckpointPlan extends ModelTexts, PlannedTensors {
  readonly step: number;
}

/** Options of a save. */
export interface SaveOptions extends FileSizes {
  /** Called after each part, with the bytes of tensors written so far and in all. */
  readonly onProgress?: (writtenBytes: number, plannedBytes: number) => void;
  /** Which checkpoints to keep once the new one is durable. Default: all. */
  readonly keep?: KeepRule;
  /** Name of the new checkpoint, given before others are removed: a named one is always kept. */
  readonly named?: StateName | undefined;
}

/** A durable checkpoint. */
export interface SavedCheckpoint {
  readonly path: string;
  /** Size of all its files, the manifest included. */
  readonly sizeBytes: number;
  /** Result of removing those that {@link SaveOptions.keep} does not keep. */
  readonly pruned: Pruned;
}

/**
 * A checkpoint that is being written; bytes are pushed as they come. After `commit` it is complete and on the disk,
 * before that it does not exist; earlier checkpoints are never changed. Disposing discards what was not committed.
 */
export class CheckpointDraft implements AsyncDisposable {
  /** Its future path. */
  readonly path: string;
  /** Bytes of all tensors. */
  readonly plannedBytes: number;
  readonly #storage: CheckpointStorage;
  readonly #plan: CheckpointPlan;
  readonly #options: SaveOptions;
  readonly #draft: StorageDraft;
  readonly #files: TensorFiles;

  private constructor(
    storage: CheckpointStorage,
    plan: CheckpointPlan,
    options: SaveOptions,
    draft: StorageDraft,
    files: TensorFiles,
  ) {
    this.path = `${storage.location}/${stepFolder(plan.step)}`;
    this.#storage = storage;
    this.#plan = plan;
    this.#options = options;
    this.#draft = draft;
    this.#files = files;
    this.plannedBytes = files.plannedBytes;
  }

  /**
   * Starts the checkpoint of a step.
   * @throws {TroupeError} `SAFETENSORS_TENSOR` for a repeated name or an impossible shape; `CHECKPOINT_SAVE_FAILED`
   */
  static async begin(
    storage: CheckpointStorage,
    plan: CheckpointPlan,
    options: SaveOptions = {},
  ): Promise<CheckpointDraft> {
    const { maxFileBytes = defaultMaxFileBytes, chunkBytes = CHUNK_BYTES } = options;
    if (!(maxFileBytes >= 1)) throw wrongOption("maxFileBytes", "at least 1", maxFileBytes);
    if (!Number.isSafeInteger(chunkBytes) || chunkBytes < 1 || chunkBytes > maxChunkBytes)
      throw wrongOption("chunkBytes", `a whole number from 1 to ${maxChunkBytes}`, chunkBytes);
    if (options.keep !== undefined) checkRule(options.keep);
    const files = new TensorFiles(plan, [weightsStem(plan), "optimizer"], { maxFileBytes, chunkBytes });
    const name = stepFolder(plan.step);
    try {
      return new CheckpointDraft(storage, plan, options, await storage.begin(name), files);
    } catch (cause) {
      throw saveFailed(`${storage.location}/${name}`, plan.step, cause);
    }
  }

  /** The entries in the order in which {@link write} expects their bytes, the weights' first. */
  get order(): string[] {
    return this.#files.order;
  }

  /** Bytes of tensors written so far. */
  get writtenBytes(): number {
    return this.#files.writtenBytes;
  }

  /** Ticket with which other writers join it. */
  get ticket(): string {
    return this.#draft.ticket;
  }

  /**
   * Writes the next bytes of a tensor. In each group, weights and optimizer, complete tensors follow each other in the plan's
   * order (wider dtypes first). Call it again only after the promise is fulfilled; then the memory may be reused.
   * @param entry - the tensor's name; for a part, its name in {@link order}
   * @throws {TroupeError} `SAFETENSORS_TENSOR` out of order; `CHECKPOINT_SAVE_FAILED` with the first cause
   */
  async write(entry: string, bytes: Bytes): Promise<void> {
    try {
      await this.#files.write(entry, bytes, this.#draft);
      this.#options.onProgress?.(this.writtenBytes, this.plannedBytes);
    } catch (cause) {
      throw this.#failed(cause);
    }
  }

  /**
   * Makes the checkpoint durable and lets `latest` name it, then removes checkpoints that need not be kept.
   * @param state - the trainer's state; its step is the plan's
   * @param shares - durable parts that other writers have written
   * @throws {TroupeError} `CHECKPOINT_SAVE_FAILED`, also for missing bytes, and for a manifest that readers would refuse
   */
  async commit(state: TrainerState, shares: readonly WrittenTensors[] = []): Promise<SavedCheckpoint> {
    try {
      if (state.step !== this.#plan.step) throw wrongOption("state.step", `${this.#plan.step}`, state.step);
      const { files, tensors } = joinedTensors([await this.#files.finish(this.#draft), ...shares]);
      const sums = new Map(files);
      const texts = [...this.#indexes(), ...this.#texts(), ...Object.entries(this.#plan.companions ?? {})];
      for (const [name, content] of texts) sums.set(name, await this.#writeText(name, content));
      const manifest = Buffer.from(encodeManifest({ state, files: sums, tensors }));
      // Refused now, while earlier checkpoints are still there, rather than by its readers.
      parseManifest(manifest, `${this.path}/${manifestName}`);
      const sealed = await this.#writeText(manifestName, manifest);
      await this.#draft.commit();
      const sizeBytes = [...sums.values()].reduce((sum, file) => sum + file.sizeBytes, sealed.sizeBytes);
      const { keep, named } = this.#options;
      if (named !== undefined) await nameState(this.#storage, named, state.step);
      const pruned =
        keep === undefined
          ? { removed: [], failed: [] }
          : await pruneAfterSave(this.#storage, keep, runOf(state));
      return { path: this.path, sizeBytes, pruned };
    } catch (cause) {
      throw this.#failed(cause);
    }
  }

  /** Discards what was not committed; nothing of it remains. */
  async abandon(): Promise<void> {
    await this.#draft.abandon();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.abandon();
  }

  async #writeText(name: string, content: string | Uint8Array): Promise<FileSums> {
    const file = await this.#draft.create(name);
    await file.append(Buffer.from(content));
    return file.finish();
  }

  /** The indexes of groups with several files, for Hugging Face's readers. */
  #indexes(): [string, string][] {
    return [weightsStem(this.#plan), "optimizer"].flatMap((group) => {
      const files = this.#files.files.filter(({ name }) => name.startsWith(`${group}-`));
      const tensors = files.map(({ name, entries }) => ({ name, tensors: entries }));
      return files.length === 0 ? [] : [[`${group}.safetensors.index.json`, indexOf(tensors)]];
    });
  }

  #texts(): [string, string][] {
    const { config, generationConfig, adapter } = this.#plan;
    const texts: [string, JsonObject | undefined][] = [
      ["config.json", config],
      [generationConfigName, generationConfig],
      [adapterConfigName, adapter?.config],
    ];
    return texts.flatMap(([name, value]) => (value === undefined ? [] : [[name, textOf(value)]]));
  }

  #failed(cause: unknown): TroupeError {
    return saveFailed(this.path, this.#plan.step, cause);
  }
}

const textOf = (value: unknown): string => `${JSON.stringify(value, null, 2)}\n`;
