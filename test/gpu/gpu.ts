import { expect } from "vitest";
import { deviceCount, grad, onDevice, type Tensor } from "../../src/compute/tensor/index.ts";
import { numbers } from "../tensor/numbers.ts";

/** Whether this machine has a GPU that the addon can use. */
export const hasGpu = deviceCount("cuda") > 0;

/** In which orders a block's threads run, where an addon that runs the kernels on the host is what is tested. */
export const hostOrders = (process.env.TROUPE_ADDON ?? "").endsWith("troupe_on_host.node")
  ? ["forward", "backward", "7"]
  : undefined;

/** Whether the kernels can be run at all. Where they cannot, what needs them is skipped, and says so once. */
export const hasKernels = hasGpu || hostOrders !== undefined;
if (!hasKernels)
  console.warn(
    "\n*** NO GPU: nothing of test/gpu is proved here (npm run test:gpu where there is one; npm run test:cuda-on-host) ***\n",
  );

/** A copy on the GPU, a leaf where the other asks for gradients. */
export function onGpu(tensor: Tensor): Tensor {
  const copy = hasGpu ? tensor.detach().onto("cuda:0") : tensor.detach().clone();
  return tensor.requiresGrad ? copy.requiresGrad_() : copy;
}

/** Copies a GPU's result to the host, for comparing. */
export function back(tensor: Tensor): Tensor {
  return tensor.detach().onto("cpu");
}

/** Runs a body with the kernels for CUDA, tensors made on the GPU: once there; on the host once in each order of threads. */
export function withKernels(body: () => void): void {
  if (hasGpu) {
    onDevice("cuda:0", body);
    return;
  }
  for (const order of hostOrders ?? []) {
    process.env.TROUPE_CUDA_ON_HOST = order;
    try {
      body();
    } finally {
      delete process.env.TROUPE_CUDA_ON_HOST;
    }
  }
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

/** An operator's inputs on either device, and the tolerance between GPU and host. */
export interface Comparison {
  readonly inputs: readonly Tensor[];
  readonly run: (...inputs: Tensor[]) => Tensor | readonly Tensor[];
  readonly forward: Nearness;
  /** Tolerances of the gradients, in the order of the inputs that require them; the last holds for the rest. */
  readonly backward?: readonly Nearness[];
}

/** Runs an operator on the host and on the GPU, forward and backward, and compares all that comes out. */
export function compare({ inputs, run, forward, backward = [forward] }: Comparison): void {
  const ranWith = (given: readonly Tensor[]) => {
    const result = run(...given);
    const outputs = Array.isArray(result) ? (result as Tensor[]) : [result as Tensor];
    return { outputs, leaves: given.filter((input) => input.requiresGrad) };
  };
  const host = ranWith(inputs);
  const from = host.outputs.map(gradientFor);
  const wanted = host.leaves.length === 0 ? [] : grad(host.outputs, host.leaves, from);
  withKernels(() => {
    const device = ranWith(inputs.map(onGpu));
    const got = host.leaves.length === 0 ? [] : grad(device.outputs, device.leaves, from.map(onGpu));
    for (const [index, output] of host.outputs.entries())
      expectLike(device.outputs[index] as Tensor, output, forward, `output ${index}`);
    for (const [index, gradient] of wanted.entries()) {
      const nearness = backward[Math.min(index, backward.length - 1)] as Nearness;
      expectLike(got[index] as Tensor, gradient as Tensor, nearness, `gradient ${index}`);
    }
  });
}

/** No two elements weigh alike. */
function gradientFor(output: Tensor): Tensor {
  return output.detach().mul(0.37).add(0.11);
}

/** An attention that is compared. */
export interface Attending {
  readonly groups: number;
  readonly rows: number;
  readonly keys: number;
  readonly causal?: boolean;
  readonly window?: number;
  readonly mask?: boolean;
  readonly bias?: boolean;
  readonly blind?: boolean;
}
