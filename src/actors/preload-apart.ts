import { setHostAddress } from "../compute/collectives/index.ts";
import { type PackedTensor, packRef, type TensorRef, unpackRef } from "../compute/tensor/index.ts";
import type { ProcessSupport } from "../runtime/index.ts";
import { isTensorRef, processes as ofOneHost } from "./preload.ts";

export { onUndelivered, order } from "./preload.ts";

// A member's address then names no number for each other member, by which that would connect: its rank will do. Gloo reads it from the
// process itself.
process.env.GLOO_ENABLE_RANK_AS_SEQUENCE_NUMBER ??= "1";

/**
 * What actors need to live in processes that share no memory: none of them is in a shared folder, and a tensor in a message
 * crosses as a copy of its bytes. Batches do, and what is saved or restored; what ranks compute together goes over their groups.
 */
export const processes = {
  mapFile: ofOneHost.mapFile,
  reachedAt: setHostAddress,
  ipcCodec: {
    accepts: isTensorRef,
    encode: (record) => packRef(record as unknown as TensorRef),
    decode: (data) => unpackRef(data as PackedTensor),
  },
  onActorEnded: ofOneHost.onActorEnded,
} satisfies ProcessSupport;
