import { setHostAddress } from "../../compute/collectives/index.ts";
import { type PackedTensor, packRef, type TensorRef, unpackRef } from "../../compute/tensor/index.ts";
import type { ProcessSupport } from "../../runtime/index.ts";
import { isTensorRef, processes as ofOneHost } from "./one-host.ts";

export { onUndelivered, order } from "./one-host.ts";

// A member's address then has no number for each other member to connect by: the rank will do. Gloo reads this from the process
// itself.
process.env.GLOO_ENABLE_RANK_AS_SEQUENCE_NUMBER ??= "1";

/**
 * Process support for actors in processes that share no memory: a tensor in a message crosses as a copy of its bytes. So do
 * batches and saved or restored state; the ranks' computations go over their groups.
 */
export const processes = {
  mapFile: ofOneHost.mapFile,
  forks: ofOneHost.forks,
  reachedAt: setHostAddress,
  ipcCodec: {
    accepts: isTensorRef,
    encode: (record) => packRef(record as unknown as TensorRef),
    decode: (data) => unpackRef(data as PackedTensor),
  },
  onActorEnded: ofOneHost.onActorEnded,
} satisfies ProcessSupport;
