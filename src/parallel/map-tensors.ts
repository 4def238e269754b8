import { type Tensor, Tensor as TensorClass } from "../tensor/index.ts";

/** @returns `value` with `change` applied to every tensor in it: a tensor, or arrays and plain objects of them */
export function mapTensors(value: unknown, change: (tensor: Tensor) => unknown): unknown {
  if (value instanceof TensorClass) return change(value);
  if (Array.isArray(value)) return value.map((item) => mapTensors(item, change));
  if (value !== null && typeof value === "object" && Object.getPrototypeOf(value) === Object.prototype) {
    return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, mapTensors(item, change)]));
  }
  return value;
}
