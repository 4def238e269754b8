import { type NamesOf, refuseUnknown, TroupeError } from "../../errors/index.ts";
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

/**
 * Refuses options that a function does not have, which would otherwise be another method than intended.
 * @throws {TroupeError} `TENSOR_ARGUMENT`
 */
export function checkOptions<Options extends object>(
  where: string,
  given: Options,
  names: NamesOf<Options>,
): void {
  refuseUnknown("TENSOR_ARGUMENT", where, given, names);
}

/**
 * Refuses a value that is none of those that an option has.
 * @param option - its name
 * @throws {TroupeError} `TENSOR_ARGUMENT`
 */
export function checkChoice(
  where: string,
  option: string,
  given: unknown,
  choices: readonly unknown[],
): void {
  if (choices.includes(given)) return;
  const last = choices.slice(-1);
  throw argument(where, `${option} ${choices.slice(0, -1).join(", ")} or ${last}`, given);
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
