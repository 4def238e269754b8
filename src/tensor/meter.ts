import { type Metered, native } from "./native.ts";

/** Reads what has been counted since {@link metered} began. */
export interface Meter {
  read(): Metered;
  /** Starts the peak again at what is there now. */
  resetPeak(): void;
}

/**
 * Counts what `body` makes of tensors of device `meta`, recorded or not: what autograd keeps of them stays until it is let go.
 * In one thread one at a time.
 */
export function metered<R>(body: (meter: Meter) => R): R {
  native().startMeter();
  try {
    return body({ read: () => native().readMeter(), resetPeak: () => native().resetMeterPeak() });
  } finally {
    native().stopMeter();
  }
}
