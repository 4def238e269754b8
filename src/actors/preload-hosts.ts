import { setHostAddress } from "../collectives/index.ts";
import type { ProcessSupport } from "../runtime/index.ts";
import {
  type ExportedTensor,
  exportRef,
  importRef,
  type PackedTensor,
  packRef,
  type TensorRef,
  unpackRef,
} from "../tensor/index.ts";
import { processes as ofOneHost } from "./preload.ts";

export { onUndelivered, order } from "./preload.ts";

// A member's address then names no number for each other member, by which that would connect: its rank will do. Gloo reads it from the
// process itself.
process.env.GLOO_ENABLE_RANK_AS_SEQUENCE_NUMBER ??= "1";

/**
 * What actors need to live in processes of several hosts: those of each share memory, in which a tensor stays whose sender knows
 * that its receiver is near; any other crosses as a copy of its bytes.
 */
export const processes: ProcessSupport = {
  ...ofOneHost,
  reachedAt: setHostAddress,
  ipcCodec: {
    accepts: (record) => ofOneHost.ipcCodec?.accepts(record) ?? false,
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
