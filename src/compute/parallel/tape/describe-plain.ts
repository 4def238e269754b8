import { isPlain } from "../../../errors/index.ts";
import { type Tensor, Tensor as TensorClass } from "../../tensor/index.ts";

/**
 * Collects the tensors of a block's arguments or result.
 * @returns the rest as text; undefined for what is neither a tensor nor plain data
 */
export function describePlain(value: unknown, tensors: Tensor[]): string | undefined {
  if (value instanceof TensorClass) {
    tensors.push(value);
    return "T";
  }
  if (typeof value === "function" || typeof value === "symbol") return undefined;
  if (typeof value === "string") return JSON.stringify(value);
  if (value === null || typeof value !== "object")
    return Object.is(value, -0) ? "-0" : `${typeof value} ${value}`;
  const isList = Array.isArray(value);
  if (!isList && !isPlain(value)) return undefined;
  let text = isList ? "[" : "{";
  for (const [key, item] of Object.entries(value)) {
    const described = describePlain(item, tensors);
    if (described === undefined) return undefined;
    text += `${JSON.stringify(key)}:${described},`;
  }
  return `${text}]`;
}
