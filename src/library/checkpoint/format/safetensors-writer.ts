import { TroupeError } from "../../../errors/index.ts";
import { type Bytes, isBytes, sizeOf } from "../storage/bytes.ts";
import type { FileSink, FileSums } from "../storage/storage.ts";
import { SummedWriter } from "../storage/summed-file.ts";
import { layOut, type TensorEntry, type TensorFacts } from "./safetensors-header.ts";

/** The bytes of a tensor, complete or in parts. */
export type TensorBytes = Bytes | Iterable<Bytes> | AsyncIterable<Bytes>;

/** A tensor to save: its bytes, row-major and little-endian, are requested when they are written. */
export interface TensorSource extends TensorFacts {
  /** May return parts, so that only part of a tensor need be in memory; a part may be reused once the next is requested. */
  read(): TensorBytes | Promise<TensorBytes>;
}

/** Metadata that Hugging Face's readers expect in the header. */
export const pytorchMetadata = { format: "pt" } as const;

/**
 * Writes a new safetensors file and waits until it is durable.
 * @param path - must not exist
 * @param metadata - free text for the header
 * @throws {TroupeError} errors of `appendSafetensors`; the caller must then remove the incomplete file
 */
export async function writeSafetensors(
  path: string,
  tensors: readonly TensorSource[],
  metadata: Readonly<Record<string, string>> = pytorchMetadata,
): Promise<FileSums> {
  const file = await SummedWriter.create(path);
  try {
    await appendSafetensors(file, tensors, metadata);
    return await file.finish();
  } finally {
    file.drop();
  }
}

/**
 * Writes the content of a safetensors file in the reference writer's layout. Tensors are read one after the other in
 * the order of the file (widest dtype first, then by name), whatever their order in `tensors`.
 * @param file - new and empty
 * @throws {TroupeError} `SAFETENSORS_TENSOR` for a source whose bytes do not match its shape; errors of a source or the
 * file system
 */
export async function appendSafetensors(
  file: FileSink,
  tensors: readonly TensorSource[],
  metadata: Readonly<Record<string, string>> = pytorchMetadata,
): Promise<void> {
  const { entries, header } = layOut(tensors.toSorted(byName), metadata);
  const sources = new Map(tensors.map((tensor) => [tensor.name, tensor]));
  await file.append(header);
  for (const entry of entries) await writeTensor(file, entry, sources.get(entry.name) as TensorSource);
}

/** Compares names as the reference writer does: by their UTF-8 bytes. */
export function byName(a: TensorFacts, b: TensorFacts): number {
  return Buffer.compare(Buffer.from(a.name), Buffer.from(b.name));
}

async function writeTensor(file: FileSink, entry: TensorEntry, source: TensorSource): Promise<void> {
  const expectedBytes = entry.end - entry.begin;
  let sizeBytes = 0;
  for await (const part of partsOf(await source.read())) {
    sizeBytes += sizeOf(part);
    if (sizeBytes > expectedBytes) break;
    await file.append(part);
  }
  if (sizeBytes !== expectedBytes)
    throw wrongSource(entry, sizeBytes > expectedBytes ? "more" : String(sizeBytes));
}

/** The parts in which a source returns its bytes. */
export function partsOf(content: TensorBytes): Iterable<Bytes> | AsyncIterable<Bytes> {
  return isBytes(content) ? [content] : content;
}

/** The error for a source that returns another number of bytes than its tensor has. */
export function wrongSource(entry: TensorEntry, got: string): TroupeError {
  const expectedBytes = entry.end - entry.begin;
  return new TroupeError("SAFETENSORS_TENSOR", {
    where: "safetensors",
    expected: `${expectedBytes} bytes from the source of tensor ${JSON.stringify(entry.name)}, ${entry.dtype}[${entry.shape}]`,
    got: `${got}`,
    fields: { tensor: entry.name, expectedBytes, got },
  });
}
