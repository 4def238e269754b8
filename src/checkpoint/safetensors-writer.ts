import { TroupeError } from "../errors.ts";
import { type FileFacts, type FileWriter, writeDurably } from "./durable-file.ts";
import { layOut, type TensorEntry, type TensorFacts } from "./safetensors-header.ts";

/** The bytes of a tensor, whole or in parts. */
export type TensorBytes = Uint8Array | Iterable<Uint8Array> | AsyncIterable<Uint8Array>;

/** A tensor to be saved: named bytes, row-major and little-endian, fetched when their turn comes. */
export interface TensorSource extends TensorFacts {
  /** In parts, no more than a part of one tensor need be in memory; a part may be reused once the next is asked for. */
  read(): TensorBytes | Promise<TensorBytes>;
}

/** What Hugging Face's readers want to find in the header. */
export const pytorchMetadata = { format: "pt" } as const;

/**
 * Writes a new safetensors file and waits until the disk has it.
 * @param path - where no file is yet
 * @param metadata - free text for the header
 * @throws {TroupeError} what {@link appendSafetensors} throws; the file is then incomplete, and the caller's to remove
 */
export function writeSafetensors(
  path: string,
  tensors: readonly TensorSource[],
  metadata: Readonly<Record<string, string>> = pytorchMetadata,
): Promise<FileFacts> {
  return writeDurably(path, (file) => appendSafetensors(file, tensors, metadata));
}

/**
 * Writes the content of a safetensors file. Tensors are read one after the other, in the order of the file (widest
 * dtype first, then by name), whatever their order in `tensors`.
 * @param file - new, nothing in it yet
 * @throws {TroupeError} `SAFETENSORS_TENSOR` when a source gives another number of bytes than its shape says; what a
 * source or the file system throws
 */
export async function appendSafetensors(
  file: FileWriter,
  tensors: readonly TensorSource[],
  metadata: Readonly<Record<string, string>> = pytorchMetadata,
): Promise<void> {
  const { entries, header } = layOut(tensors, metadata);
  const sources = new Map(tensors.map((tensor) => [tensor.name, tensor]));
  await file.append(header);
  for (const entry of entries) await writeTensor(file, entry, sources.get(entry.name) as TensorSource);
}

async function writeTensor(file: FileWriter, entry: TensorEntry, source: TensorSource): Promise<void> {
  const content = await source.read();
  const parts = content instanceof Uint8Array ? [content] : content;
  const expectedBytes = entry.end - entry.begin;
  let sizeBytes = 0;
  for await (const part of parts) {
    sizeBytes += part.length;
    if (sizeBytes > expectedBytes) break;
    await file.append(part);
  }
  if (sizeBytes === expectedBytes) return;
  const got = sizeBytes > expectedBytes ? "more" : String(sizeBytes);
  throw new TroupeError(
    "SAFETENSORS_TENSOR",
    `[safetensors] expected ${expectedBytes} bytes from the source of tensor ${JSON.stringify(entry.name)}, ` +
      `${entry.dtype}[${entry.shape}]: got ${got}`,
    { fields: { tensor: entry.name, expectedBytes, sizeBytes } },
  );
}
