import { native } from "../native.ts";
import { scope } from "../scope.ts";
import { adopt, liveHandle, type Tensor } from "../tensor.ts";

/** Returns a number that a device computes. It waits for the work up to the number, and no more. Call it once. */
export type LateNumber = () => number;

/**
 * Starts to copy the one element of a tensor to the host as soon as it is computed, without waiting. For a tensor of the host
 * it is read at once.
 */
export function readLater(tensor: Tensor): LateNumber {
  if (tensor.device === "cpu") {
    const value = tensor.item();
    return () => value;
  }
  const reading = native().beginReading(liveHandle(tensor, "readLater"));
  return () => scope(() => adopt(native().endReading(reading)).item());
}
