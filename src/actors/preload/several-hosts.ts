import {
  type ExportedTensor,
  exportRef,
  importRef,
  type PackedTensor,
  packRef,
  type TensorRef,
  unpackRef,
} from "../../compute/tensor/index.ts";
import type { ProcessSupport } from "../../runtime/index.ts";
import { processes as apart } from "./apart.ts";
import { isTensorRef, processes as ofOneHost } from "./one-host.ts";

export { onUndelivered, order } from "./one-host.ts";

/**
 * Process support for actors on several hosts: processes of one host share memory, and a tensor stays in it if its sender knows
 * that the receiver is near; any other crosses as a copy of its bytes.
 */
export const processes: ProcessSupport = {
  ...ofOneHost,
  reachedAt: apart.reachedAt,
  ipcCodec: {
    accepts: isTensorRef,
    encode: (record) => {
      const ref = record as unknown as TensorRef;
      return ref.isNear ? exportRef(ref) : packRef(ref);
    },
    decode: (data) => {
      const tensor = data as ExportedTensor | PackedTensor;
      return "exported" in tensor ? importRef(tensor) : unpackRef(tensor);
    },
  },
};
