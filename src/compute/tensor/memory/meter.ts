import { type Metered, native } from "../native.ts";
import type { Tensor } from "../tensor.ts";

/** Reads the counts since {@link metered} began. */
export interface Meter {
  read(): Metered;
  /** Resets the peak to the present value. */
  resetPeak(): void;
}

/** The kind of device whose memory is counted. */
export type MeteredDevice = "cpu" | "cuda";

let present: MeteredDevice | undefined;

/**
 * Counts the tensors of device `meta` that `body` makes, as if they had memory, including those that autograd keeps. One at a
 * time in a thread.
 * @param device - kind of device whose kernels are assumed
 */
export function metered<R>(device: MeteredDevice, body: (meter: Meter) => R): R {
  native().startMeter(device === "cuda");
  present = device;
  try {
    return body({ read: () => native().readMeter(), resetPeak: () => native().resetMeterPeak() });
  } finally {
    present = undefined;
    native().stopMeter();
  }
}

/** Whether a tensor is on a GPU, or is a meta tensor that is counted as one. */
export function isOnGpu({ device }: Tensor): boolean {
  return device.startsWith("cuda") || (device === "meta" && present === "cuda");
}

/** Whether a tensor is a meta tensor that is counted as if it had memory. */
export function isMetered({ device }: Tensor): boolean {
  return device === "meta" && present !== undefined;
}
