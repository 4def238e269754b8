import { adapterWeightsStem } from "../format/adapter-folder.ts";
import type { LogicalTensor, Slice } from "../format/manifest.ts";
import type { ModelTexts } from "../format/model-texts.ts";
import { defaultMaxFileBytes, numberedFiles } from "../format/numbered-files.ts";
import type { TensorFacts } from "../format/safetensors-header.ts";
import { type Bytes, sizeOf } from "../storage/bytes.ts";
import type { FileSums, StorageDraft } from "../storage/storage.ts";
import { CHUNK_BYTES } from "../storage/summed-file.ts";
import { DraftFile, outOfTurn } from "./draft-file.ts";

/** A tensor that a checkpoint will hold, or a part of one. */
export interface PlannedTensor extends TensorFacts {
  /** Of a part: the shape of the whole tensor, and where this part of `shape` begins in it. */
  readonly part?: { readonly of: readonly number[]; readonly offset: readonly number[] };
  /** What its file calls it, where that is not its name. */
  readonly entry?: string | undefined;
}

/** The tensors of a checkpoint, or of one writer's share of it, before the bytes are there. */
export interface PlannedTensors {
  /** The parameters, by their Hugging Face names, in the order in which their bytes will come. */
  readonly weights: readonly PlannedTensor[];
  /** What the optimizer keeps, named `<kind>.<parameter>`; its bytes come in this order, independent of the weights'. */
  readonly optimizer: readonly PlannedTensor[];
}

/** How large files and chunks are. */
export interface FileSizes {
  /** Largest file of tensors, unless a single one is larger: 5 GiB by default, as Hugging Face has it. */
  readonly maxFileBytes?: number;
  /** Bytes that one checksum answers for, 1 MiB by default; parts are read in whole chunks. */
  readonly chunkBytes?: number;
}

/** What one writer has put into a checkpoint: what the manifest says of it. Plain data. */
export interface WrittenTensors {
  readonly files: ReadonlyMap<string, FileSums>;
  readonly tensors: ReadonlyMap<string, LogicalTensor>;
}

/** The name under which a file holds a tensor or a part of one; {@link TensorFiles.write} takes it. */
export function entryOf({ name, part, entry = name }: PlannedTensor): string {
  return part === undefined ? entry : `${entry}[${part.offset.join()}]`;
}

/** What the names of the files with parameters begin with. */
export function weightsStem({ adapter }: Pick<ModelTexts, "adapter">): string {
  return adapter === undefined ? "model" : adapterWeightsStem;
}

/** The files of tensors of a draft, written as their bytes come. */
export class TensorFiles {
  /** Of all tensors. */
  readonly plannedBytes: number;
  readonly files: readonly DraftFile[];
  readonly #plan: PlannedTensors;
  readonly #fileOf = new Map<string, DraftFile>();
  #writtenBytes = 0;

  /**
   * @param stems - what the names of the files with weights, and with the optimizer's state, begin with
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

  /** The entries in the order in which {@link write} takes their bytes, the weights' first. */
  get order(): string[] {
    return this.files.flatMap((file) => file.entries.map(({ name }) => name));
  }

  /** Bytes of tensors written so far. */
  get writtenBytes(): number {
    return this.#writtenBytes;
  }

  /** As {@link CheckpointDraft.write}. */
  async write(entry: string, bytes: Bytes, draft: StorageDraft): Promise<void> {
    const file = this.#fileOf.get(entry);
    if (file === undefined) throw outOfTurn(entry, "a tensor of the plan");
    await file.write(entry, bytes, draft);
    this.#writtenBytes += sizeOf(bytes);
  }

  /** Waits until all files are durable. @throws for bytes that never came */
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

/** What several writers have put into a checkpoint, as one. */
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
