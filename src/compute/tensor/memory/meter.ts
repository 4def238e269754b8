import { type Metered, native } from "../native.ts";
import type { Tensor } from "../tensor.ts";

/** Reads what has been counted since {@link metered} began. */
export interface Meter {
  read(): Metered;
  /** Starts the peak again at what is there now. */
  resetPeak(): void;
}

/** Whose memory is counted. */
export type MeteredDevice = "cpu" | "cuda";

let present: MeteredDevice | undefined;

/**
 * Counts what `body` makes of tensors of device `meta`, recorded or not: what autograd keeps of them stays until it is let go.
 * In one thread one at a time.
 * @param device - whose kernels they would be
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

/** @returns whether a tensor is on a GPU, or stands for one there whose memory is counted */
export function isOnGpu({ device }: Tensor): boolean {
  return device.startsWith("cuda") || (device === "meta" && present === "cuda");
}

/** @returns whether a tensor has no memory and is counted as if it had */
export function isMetered({ device }: Tensor): boolean {
  return device === "meta" && present !== undefined;
}
