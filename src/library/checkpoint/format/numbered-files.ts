import { type TensorFacts, tensorSizeBytes } from "./safetensors-header.ts";

/** A safetensors file to be written. */
export interface PlannedFile<T extends TensorFacts> {
  readonly name: string;
  readonly tensors: readonly T[];
}

/** The largest file of tensors by default, as in Hugging Face's library. */
export const defaultMaxFileBytes = 5 * 2 ** 30;

/**
 * Divides tensors, in their order, among files of at most a size, except where a single tensor is larger.
 * @param group - prefix of the files' names
 * @returns one file with the plain name, or several numbered as Hugging Face does; none without tensors
 */
export function numberedFiles<T extends TensorFacts>(
  group: string,
  tensors: readonly T[],
  maxFileBytes: number,
): PlannedFile<T>[] {
  const cuts: T[][] = [];
  let fileBytes = 0;
  for (const tensor of tensors) {
    const sizeBytes = tensorSizeBytes(tensor.dtype, tensor.shape) ?? 0;
    if (cuts.length === 0 || (fileBytes > 0 && fileBytes + sizeBytes > maxFileBytes)) {
      cuts.push([]);
      fileBytes = 0;
    }
    cuts.at(-1)?.push(tensor);
    fileBytes += sizeBytes;
  }
  const count = (number: number) => String(number).padStart(5, "0");
  return cuts.map((cut, index) => {
    const number = cuts.length === 1 ? "" : `-${count(index + 1)}-of-${count(cuts.length)}`;
    return { name: `${group}${number}.safetensors`, tensors: cut };
  });
}

/** Returns the index of numbered files for Hugging Face's readers. */
export function indexOf(files: readonly PlannedFile<TensorFacts>[]): string {
  const weightMap: Record<string, string> = {};
  let totalBytes = 0;
  for (const { name, tensors } of files) {
    for (const tensor of tensors) {
      weightMap[tensor.name] = name;
      totalBytes += tensorSizeBytes(tensor.dtype, tensor.shape) ?? 0;
    }
  }
  return `${JSON.stringify({ metadata: { total_size: totalBytes }, weight_map: weightMap }, null, 2)}\n`;
}
