import { onDevice } from "../device.ts";
import { copy_ } from "../ops.generated.ts";
import { scope } from "../scope.ts";
import type { Tensor } from "../tensor.ts";

/**
 * Lets `change` write a tensor's elements in host memory. For a tensor on a device, that is a copy, which is copied back. For
 * values that come from a file, or must have the same bits whatever the device's arithmetic.
 */
export function overHost(tensor: Tensor, change: (host: Tensor) => void): void {
  onDevice("cpu", () =>
    scope(() => {
      const host = tensor.onto("cpu"); // for a tensor of the host, the tensor itself
      change(host);
      if (tensor.device !== "cpu") copy_(tensor, host);
    }),
  );
}
