import { TroupeError } from "../../../errors/index.ts";
import { layOut, type TensorEntry, type TensorFacts } from "../format/safetensors-header.ts";
import { pytorchMetadata, wrongSource } from "../format/safetensors-writer.ts";
import { type Bytes, sizeOf } from "../storage/bytes.ts";
import type { FileSink, FileSums, StorageDraft } from "../storage/storage.ts";

/** A safetensors file that is written entry by entry; created with its first bytes, made durable after its last. */
export class DraftFile {
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
export function outOfTurn(entry: string, expected: string): TroupeError {
  return new TroupeError("SAFETENSORS_TENSOR", {
    where: "checkpoint",
    expected,
    got: JSON.stringify(entry),
    hint: "write tensors in the order of the plan",
    fields: { tensor: entry },
  });
}
