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
  if (value === null || typeof value !== "object")
    return typeof value === "function" || typeof value === "symbol" ? undefined : `${typeof value} ${value}`;
  const prototype: unknown = Object.getPrototypeOf(value);
  const isList = Array.isArray(value);
  if (!isList && prototype !== Object.prototype && prototype !== null) return undefined;
  let text = isList ? "[" : "{";
  for (const [key, item] of Object.entries(value)) {
    const described = describePlain(item, tensors);
    if (described === undefined) return undefined;
    text += `${key}:${described},`;
  }
  return `${text}]`;
}
