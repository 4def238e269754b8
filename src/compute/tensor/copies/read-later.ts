import { native } from "../native.ts";
import { scope } from "../scope.ts";
import { adopt, liveHandle, type Tensor } from "../tensor.ts";

/** A number that a device computes, on its way. To be asked once; it waits for what comes before the number, and no more. */
export type LateNumber = () => number;

/**
 * Has the one element of a tensor copied to the host as soon as it is computed, while both go on. Of a tensor of the host it is
 * read at once.
 */
export function readLater(tensor: Tensor): LateNumber {
  if (tensor.device === "cpu") {
    const value = tensor.item();
    return () => value;
  }
  const reading = native().beginReading(liveHandle(tensor, "readLater"));
  return () => scope(() => adopt(native().endReading(reading)).item());
}
