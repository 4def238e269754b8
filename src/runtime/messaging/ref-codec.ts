import { ActorRef, type Sender } from "./actor-ref.ts";
import type { Address } from "../protocol/address.ts";
import type { Codec } from "../transport/codec.ts";

/** Carries refs across borders: the address travels, the receiver's own ref is made of it. */
export function refCodec(holder: () => Sender): Codec {
  return {
    tag: "actor-ref",
    accepts: (value) => value instanceof ActorRef,
    encode: (value) => ({ ...(value as ActorRef<unknown>).address }),
    decode: (data) => new ActorRef(holder(), { address: data as Address }),
  };
}
