import { TroupeError } from "../../../errors/index.ts";
import { type Bytes, isBytes, sizeOf } from "../storage/bytes.ts";
import type { FileSink, FileSums } from "../storage/storage.ts";
import { SummedWriter } from "../storage/summed-file.ts";
import { layOut, type TensorEntry, type TensorFacts } from "./safetensors-header.ts";

/** The bytes of a tensor, whole or in parts. */
export type TensorBytes = Bytes | Iterable<Bytes> | AsyncIterable<Bytes>;

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
 * @throws {TroupeError} what `appendSafetensors` throws; the file is then incomplete, and the caller's to remove
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
 * Writes the content of a safetensors file, laid out as the reference writer does. Tensors are read one after the other,
 * in the order of the file (widest dtype first, then by name), whatever their order in `tensors`.
 * @param file - new, nothing in it yet
 * @throws {TroupeError} `SAFETENSORS_TENSOR` when a source gives another number of bytes than its shape says; what a
 * source or the file system throws
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

/** The order of names in which the reference writer lays tensors out: by the bytes of their UTF-8. */
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
  if (sizeBytes !== expectedBytes) {
    throw wrongSource(entry, sizeBytes > expectedBytes ? "more" : String(sizeBytes));
  }
}

/** The parts in which a source gives its bytes. */
export function partsOf(content: TensorBytes): Iterable<Bytes> | AsyncIterable<Bytes> {
  return isBytes(content) ? [content] : content;
}

/** An error about a source that gives other than the bytes of its tensor. */
export function wrongSource(entry: TensorEntry, got: string): TroupeError {
  const expectedBytes = entry.end - entry.begin;
  return new TroupeError(
    "SAFETENSORS_TENSOR",
    {
      where: "safetensors",
      expected: `${expectedBytes} bytes from the source of tensor ${JSON.stringify(entry.name)}, ${entry.dtype}[${entry.shape}]`,
      got: `${got}`,
    },
    { fields: { tensor: entry.name, expectedBytes, got } },
  );
}
