import { expect } from "vitest";
import { deviceCount, grad, type Tensor } from "../../src/tensor/index.ts";
import { numbers } from "../tensor/numbers.ts";

/** Whether this machine has a GPU that the addon can use. Where it has none, what needs one is skipped, and says so once. */
export const hasGpu = deviceCount("cuda") > 0;
if (!hasGpu)
  console.warn(
    "\n*** NO GPU: nothing of test/gpu is proved here (npm run test:gpu on a machine with one) ***\n",
  );

/** A copy on the GPU, a leaf where the other asks for gradients. */
export function onGpu(tensor: Tensor): Tensor {
  const copy = tensor.detach().onto("cuda:0");
  return tensor.requiresGrad ? copy.requiresGrad_() : copy;
}

/** What a GPU gave, for comparing. */
export function back(tensor: Tensor): Tensor {
  return tensor.detach().onto("cpu");
}

/** How near results must be: the same bits, or a part of the largest element. */
export type Nearness = "bits" | number;

export function expectLike(actual: Tensor, expected: Tensor, nearness: Nearness, what: string): void {
  const [got, wanted] = [back(actual), expected.detach()];
  expect(got.shape, what).toEqual(wanted.shape);
  expect(got.dtype, what).toBe(wanted.dtype);
  if (nearness === "bits") {
    expect(numbers(got), what).toEqual(numbers(wanted));
    return;
  }
  if (wanted.numel === 0) return;
  const [a, b] = [got.to("float64"), wanted.to("float64")];
  const scale = Math.max(b.abs().max().item(), 1e-30);
  expect(a.sub(b).abs().max().item() / scale, what).toBeLessThanOrEqual(nearness);
}

/** What an operator is given on either device, and how near the GPU must come to the host. */
export interface Comparison {
  readonly inputs: readonly Tensor[];
  readonly run: (...inputs: Tensor[]) => Tensor | readonly Tensor[];
  readonly forward: Nearness;
  /** Of the inputs that ask for gradients, in their order; the last holds for the rest. */
  readonly backward?: readonly Nearness[];
}

/** Runs an operator on the host and on the GPU, forward and backward, and compares all that comes out. */
export function compare({ inputs, run, forward, backward = [forward] }: Comparison): void {
  const ranWith = (given: readonly Tensor[]) => {
    const result = run(...given);
    const outputs = Array.isArray(result) ? (result as Tensor[]) : [result as Tensor];
    return { outputs, leaves: given.filter((input) => input.requiresGrad) };
  };
  const [host, device] = [ranWith(inputs), ranWith(inputs.map(onGpu))];
  for (const [index, output] of host.outputs.entries())
    expectLike(device.outputs[index] as Tensor, output, forward, `output ${index}`);
  if (host.leaves.length === 0) return;
  const from = host.outputs.map(gradientFor);
  const wanted = grad(host.outputs, host.leaves, from);
  const got = grad(
    device.outputs,
    device.leaves,
    from.map((gradient) => gradient.onto("cuda:0")),
  );
  for (const [index, gradient] of wanted.entries()) {
    const nearness = backward[Math.min(index, backward.length - 1)] as Nearness;
    expectLike(got[index] as Tensor, gradient as Tensor, nearness, `gradient ${index}`);
  }
}

/** No two elements weigh alike. */
function gradientFor(output: Tensor): Tensor {
  return output.detach().mul(0.37).add(0.11);
}
