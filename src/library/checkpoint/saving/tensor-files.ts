import { adapterWeightsStem } from "../format/adapter-folder.ts";
import type { LogicalTensor, Slice } from "../format/manifest.ts";
import type { ModelTexts } from "../format/model-texts.ts";
import { defaultMaxFileBytes, numberedFiles } from "../format/numbered-files.ts";
import type { TensorFacts } from "../format/safetensors-header.ts";
import { type Bytes, sizeOf } from "../storage/bytes.ts";
import type { FileSums, StorageDraft } from "../storage/storage.ts";
import { CHUNK_BYTES } from "../storage/summed-file.ts";
import { DraftFile, outOfTurn } from "./draft-file.ts";

/** A tensor that a checkpoint will have, or a part of one. */
export interface PlannedTensor extends TensorFacts {
  /** For a part: the shape of the complete tensor, and the start of this part of `shape` in it. */
  readonly part?: { readonly of: readonly number[]; readonly offset: readonly number[] };
  /** Its name in the file, where that differs. */
  readonly entry?: string | undefined;
}

/** The tensors of a checkpoint, or of one writer's share of it, before their bytes are there. */
export interface PlannedTensors {
  /** The parameters, by their Hugging Face names, in the order of their bytes. */
  readonly weights: readonly PlannedTensor[];
  /** The optimizer's tensors, named `<kind>.<parameter>`; their bytes come in this order, independent of the weights'. */
  readonly optimizer: readonly PlannedTensor[];
}

/** Sizes of files and chunks. */
export interface FileSizes {
  /** Largest file of tensors, except where a single one is larger. Default: 5 GiB, as in Hugging Face's library. */
  readonly maxFileBytes?: number;
  /** Bytes per checksum, 1 MiB by default. Reads fetch complete chunks. */
  readonly chunkBytes?: number;
}

/** One writer's part of a checkpoint, for the manifest. Plain data. */
export interface WrittenTensors {
  readonly files: ReadonlyMap<string, FileSums>;
  readonly tensors: ReadonlyMap<string, LogicalTensor>;
}

/** Name of a tensor, or of a part of one, in its file; {@link TensorFiles.write} takes it. */
export function entryOf({ name, part, entry = name }: PlannedTensor): string {
  return part === undefined ? entry : `${entry}[${part.offset.join()}]`;
}

/** Prefix of the names of the files with parameters. */
export function weightsStem({ adapter }: Pick<ModelTexts, "adapter">): string {
  return adapter === undefined ? "model" : adapterWeightsStem;
}

/** The files of tensors of a draft, written as their bytes come. */
export class TensorFiles {
  /** Bytes of all tensors. */
  readonly plannedBytes: number;
  readonly files: readonly DraftFile[];
  readonly #plan: PlannedTensors;
  readonly #fileOf = new Map<string, DraftFile>();
  #writtenBytes = 0;

  /**
   * @param stems - prefixes of the names of the files with weights, and with the optimizer's state
   * @throws {TroupeError} `SAFETENSORS_TENSOR` for a repeated name or an impossible shape
   */
  constructor(
    plan: PlannedTensors,
    stems: readonly [weights: string, optimizer: string],
    { maxFileBytes = defaultMaxFileBytes, chunkBytes = CHUNK_BYTES }: FileSizes = {},
  ) {
    const groups = [plan.weights, plan.optimizer] as const;
    this.#plan = plan;
    this.files = groups.flatMap((tensors, group) => {
      const entries = tensors.map((tensor) => ({ ...tensor, name: entryOf(tensor) }));
      const files = numberedFiles(stems[group] as string, entries, maxFileBytes);
      return files.map((file) => new DraftFile(file.name, file.tensors, chunkBytes));
    });
    for (const file of this.files) for (const { name } of file.entries) this.#fileOf.set(name, file);
    this.plannedBytes = this.files.reduce((sum, file) => sum + file.dataBytes, 0);
  }

  /** The entries in the order in which {@link write} expects their bytes, the weights' first. */
  get order(): string[] {
    return this.files.flatMap((file) => file.entries.map(({ name }) => name));
  }

  /** Bytes of tensors written so far. */
  get writtenBytes(): number {
    return this.#writtenBytes;
  }

  /** Writes a tensor's next bytes, see {@link CheckpointDraft.write}. */
  async write(entry: string, bytes: Bytes, draft: StorageDraft): Promise<void> {
    const file = this.#fileOf.get(entry);
    if (file === undefined) throw outOfTurn(entry, "a tensor of the plan");
    await file.write(entry, bytes, draft);
    this.#writtenBytes += sizeOf(bytes);
  }

  /** Waits until all files are durable. Throws for missing bytes. */
  async finish(draft: StorageDraft): Promise<WrittenTensors> {
    const files = new Map<string, FileSums>();
    for (const file of this.files) files.set(file.name, await file.finish(draft));
    return { files, tensors: this.#tensors() };
  }

  #tensors(): Map<string, LogicalTensor> {
    const tensors = new Map<string, LogicalTensor & { slices: Slice[] }>();
    for (const planned of [...this.#plan.weights, ...this.#plan.optimizer]) {
      const { name, dtype, shape, part } = planned;
      const entry = entryOf(planned);
      const file = this.#fileOf.get(entry)?.name ?? "";
      const tensor = tensors.get(name) ?? { dtype, shape: part?.of ?? shape, slices: [] };
      tensor.slices.push({ file, entry, offset: part?.offset ?? shape.map(() => 0), shape });
      tensors.set(name, tensor);
    }
    return tensors;
  }
}

/** Merges the parts of several writers. */
export function joinedTensors(shares: readonly WrittenTensors[]): WrittenTensors {
  const files = new Map<string, FileSums>();
  const tensors = new Map<string, LogicalTensor>();
  for (const share of shares) {
    for (const [name, sums] of share.files) files.set(name, sums);
    for (const [name, tensor] of share.tensors) {
      const slices = [...(tensors.get(name)?.slices ?? []), ...tensor.slices];
      tensors.set(name, { ...tensor, slices });
    }
  }
  return { files, tensors };
}
