import { TroupeError } from "../../errors/index.ts";
import { noGrad, scope, type Tensor } from "../tensor/index.ts";

/**
 * Checks that tensors have one shape, so that none is broadcast along an axis of another meaning.
 * @param where - the function that was given them
 * @param tensors - by the name of the argument; undefined ones are passed over
 * @throws {TroupeError} `TENSOR_ARGUMENT`
 */
export function checkShapes(where: string, tensors: Readonly<Record<string, Tensor | undefined>>): void {
  const [first, ...others] = Object.entries(tensors).flatMap(([name, tensor]) =>
    tensor === undefined ? [] : [{ name, shape: `[${tensor.shape}]` }],
  );
  const other = others.find(({ shape }) => shape !== first?.shape);
  if (first !== undefined && other !== undefined)
    throw argument(where, `${other.name} of shape ${first.shape}, as ${first.name}`, other.shape);
}

/** The error for an argument of an objective. */
export function argument(where: string, expected: string, got: unknown): TroupeError {
  return new TroupeError("TENSOR_ARGUMENT", { where, expected, got: `${got}`, fields: { got } });
}

/** Float32 and float64 as they are, others in float32. */
export function widened(values: Tensor): Tensor {
  return values.dtype === "float64" ? values : values.to("float32");
}

/** Runs `body` without a graph, and releases all tensors but its result. */
export function withoutGraph<T>(body: () => T): T {
  return scope(() => noGrad(body));
}
