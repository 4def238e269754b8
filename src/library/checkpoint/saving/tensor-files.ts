import { TroupeError } from "../../../errors/index.ts";
import { adapterWeightsStem } from "../format/adapter-folder.ts";
import type { LogicalTensor, Slice } from "../format/manifest.ts";
import type { ModelTexts } from "../format/model-texts.ts";
import { defaultMaxFileBytes, numberedFiles } from "../format/numbered-files.ts";
import { layOut, type TensorEntry, type TensorFacts } from "../format/safetensors-header.ts";
import { pytorchMetadata, wrongSource } from "../format/safetensors-writer.ts";
import { type Bytes, sizeOf } from "../storage/bytes.ts";
import type { FileSink, FileSums, StorageDraft } from "../storage/storage.ts";
import { CHUNK_BYTES } from "../storage/summed-file.ts";

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
  /** Bytes per checksum. Reads fetch complete chunks. Default: 1 MiB. */
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

/** A safetensors file that is written entry by entry; created with its first bytes, made durable after its last. */
class DraftFile {
  readonly name: string;
  readonly entries: readonly TensorEntry[];
  readonly #header: Uint8Array;
  readonly #chunkBytes: number;
  readonly #order = new Map<string, number>();
  #sink: FileSink | undefined;
  #sums: FileSums | undefined;
  #next = 0;
  #dataBytes = 0;

  constructor(name: string, tensors: readonly TensorFacts[], chunkBytes: number) {
    const { entries, header } = layOut(tensors, pytorchMetadata);
    this.name = name;
    this.#chunkBytes = chunkBytes;
    this.entries = entries;
    this.#header = header;
    for (const [index, entry] of entries.entries()) this.#order.set(entry.name, index);
  }

  get dataBytes(): number {
    return this.entries.at(-1)?.end ?? 0;
  }

  async write(name: string, bytes: Bytes, draft: StorageDraft): Promise<void> {
    const sizeBytes = sizeOf(bytes);
    const entry = this.entries[this.#order.get(name) ?? -1]!;
    while (this.#dataBytes === this.entries[this.#next]?.end) this.#next += 1;
    if (sizeBytes === 0) return;
    const due = this.entries[this.#next];
    if (due !== entry && this.#dataBytes <= entry.begin)
      throw due === undefined
        ? wrongSource(entry, "more")
        : outOfTurn(name, `bytes of ${JSON.stringify(due.name)}`);
    if (this.#dataBytes + sizeBytes > entry.end) throw wrongSource(entry, "more");
    const sink = await this.#begun(draft);
    await sink.append(bytes);
    this.#dataBytes += sizeBytes;
    if (this.#dataBytes === this.dataBytes) this.#sums = await sink.finish();
  }

  async finish(draft: StorageDraft): Promise<FileSums> {
    if (this.#sums !== undefined) return this.#sums;
    const missing = this.entries.find(({ end }) => end > this.#dataBytes);
    if (missing !== undefined)
      throw wrongSource(missing, String(Math.max(0, this.#dataBytes - missing.begin)));
    return (await this.#begun(draft)).finish();
  }

  async #begun(draft: StorageDraft): Promise<FileSink> {
    if (this.#sink === undefined) {
      const sizeBytes = this.#header.length + this.dataBytes;
      this.#sink = await draft.create(this.name, this.#chunkBytes, sizeBytes);
      await this.#sink.append(this.#header);
    }
    return this.#sink;
  }
}

/** The error for bytes out of order. */
function outOfTurn(entry: string, expected: string): TroupeError {
  return new TroupeError("SAFETENSORS_TENSOR", {
    where: "checkpoint",
    expected,
    got: JSON.stringify(entry),
    hint: "write tensors in the order of the plan",
    fields: { tensor: entry },
  });
}
