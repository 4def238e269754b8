import type { IncomingMessage } from "node:http";
import { Refused } from "../../../job/http.ts";
import type { Box, SafetensorsDType } from "../../../library/checkpoint/index.ts";
import type { TensorFacts, TensorGroup } from "../staged-save.ts";

// Headers describe a tensor: Troupe-Dtype: BF16, Troupe-Shape: 1024,768 (empty for a scalar), and for a slice Troupe-Offset: 0,384
// and Troupe-Slice-Shape: 1024,384.

/** Reads the headers of a request for a tensor. @throws {Refused} 400 */
export function factsIn(request: IncomingMessage, group: TensorGroup, name: string): TensorFacts {
  const dtype = one(request, "troupe-dtype");
  const shape = counts(request, "troupe-shape");
  if (dtype === undefined || shape === undefined)
    throw new Refused(400, "expected the headers Troupe-Dtype and Troupe-Shape, such as F32 and 4,8");
  return { group, name, dtype: dtype as SafetensorsDType, shape };
}

/** Reads the slice in the headers of a request; undefined for a complete tensor. @throws {Refused} 400 */
export function sliceIn(request: IncomingMessage): Box | undefined {
  const offset = counts(request, "troupe-offset");
  const shape = counts(request, "troupe-slice-shape");
  if (offset === undefined && shape === undefined) return undefined;
  if (offset === undefined || shape === undefined)
    throw new Refused(400, "expected Troupe-Offset and Troupe-Slice-Shape together, or neither");
  return { offset, shape };
}

/** Headers that describe a tensor. */
export function headersOf(dtype: string, shape: readonly number[]): Record<string, string> {
  return { "troupe-dtype": dtype, "troupe-shape": shape.join(",") };
}

function counts(request: IncomingMessage, header: string): number[] | undefined {
  const text = one(request, header);
  if (text === undefined) return undefined;
  if (text === "") return [];
  const numbers = text.split(",").map((word) => (/^\s*\d{1,16}\s*$/.test(word) ? Number(word) : Number.NaN));
  if (numbers.length > 16 || !numbers.every(Number.isSafeInteger))
    throw new Refused(400, `expected at most 16 whole numbers with commas between them in ${header}`);
  return numbers;
}

function one(request: IncomingMessage, header: string): string | undefined {
  const values = request.headersDistinct[header] ?? [];
  if (values.length > 1) throw new Refused(400, `expected ${header} once`);
  return values[0]?.trim();
}
