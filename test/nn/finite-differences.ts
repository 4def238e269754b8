import { expect } from "vitest";
import { backward, noGrad, scope, type Tensor, tensor } from "../../src/compute/tensor/index.ts";

/**
 * Expects autograd's gradient of a scalar in every element of every input to be the central difference.
 * @param loss - computes the scalar again from the inputs' present values
 * @param inputs - leaves that ask for gradients; their values are put back
 */
export function expectGradients(
  loss: () => Tensor,
  inputs: Readonly<Record<string, Tensor>>,
  options: { step: number; tolerance: number },
): void {
  const value = () => noGrad(() => scope(() => loss().item()));
  scope(() => backward([loss()]));
  for (const [name, input] of Object.entries(inputs)) {
    const analytic = Array.from(input.grad?.toTypedArray() as Float64Array);
    const values = input.toTypedArray() as Float64Array;
    const numeric = analytic.map((_, index) => {
      const moved = (by: number) => {
        const changed = values.slice();
        changed[index] = (changed[index] ?? 0) + by;
        write(input, changed);
        return value();
      };
      return (moved(options.step) - moved(-options.step)) / (2 * options.step);
    });
    write(input, values);
    const scale = Math.max(...numeric.map(Math.abs));
    const errors = analytic.map((gradient, index) => Math.abs(gradient - (numeric[index] ?? 0)));
    expect(Math.max(...errors) / scale, name).toBeLessThan(options.tolerance);
  }
}

function write(input: Tensor, values: Float64Array): void {
  noGrad(() => scope(() => void input.copy_(tensor(values, { dtype: "float64" }).view(input.shape))));
}
