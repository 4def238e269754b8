import { onDevice } from "../device.ts";
import { copy_ } from "../ops.generated.ts";
import { scope } from "../scope.ts";
import type { Tensor } from "../tensor.ts";

/**
 * Has `change` write to a tensor's elements in host memory: on a device to a copy, which is copied back. For what must have
 * the same bits whatever a device's own arithmetic is, or comes from a file.
 */
export function overHost(tensor: Tensor, change: (host: Tensor) => void): void {
  onDevice("cpu", () =>
    scope(() => {
      const host = tensor.onto("cpu"); // on the host, the tensor itself
      change(host);
      if (tensor.device !== "cpu") copy_(tensor, host);
    }),
  );
}
