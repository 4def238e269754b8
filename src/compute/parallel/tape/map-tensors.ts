import { isPlain, TroupeError } from "../../../errors/index.ts";
import { type Tensor, Tensor as TensorClass } from "../../tensor/index.ts";

/**
 * @returns `value` with `change` applied to every tensor in it: a tensor, or arrays and plain objects of them
 * @throws {TroupeError} `BLOCK_TENSOR` for any other object that holds a tensor with a gradient: it would be overlooked
 */
export function mapTensors(value: unknown, change: (tensor: Tensor) => unknown): unknown {
  return mapLeaves(value, (leaf) => {
    if (leaf instanceof TensorClass) return change(leaf);
    if (typeof leaf === "object" && leaf !== null && !ArrayBuffer.isView(leaf)) refuseTensors(leaf);
    return leaf;
  });
}

/** @returns `value` with `change` applied to all in it but arrays and plain objects */
export function mapLeaves(value: unknown, change: (leaf: unknown) => unknown): unknown {
  if (Array.isArray(value)) return value.map((item) => mapLeaves(item, change));
  if (!isPlain(value)) return change(value);
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, mapLeaves(item, change)]));
}

function refuseTensors(value: object): void {
  const held = value instanceof Map || value instanceof Set ? [...value.values()] : Object.values(value);
  if (!held.some((item) => item instanceof TensorClass && item.requiresGrad)) return;
  const name = value.constructor.name;
  throw new TroupeError("BLOCK_TENSOR", {
    where: "block",
    expected: "tensors in arrays and plain objects, on their way in and out of a block",
    got: `one in a ${name}`,
    hint: "pass { ...fields } instead",
    fields: { name },
  });
}
