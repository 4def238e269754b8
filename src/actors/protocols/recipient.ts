import type { RefOptions } from "../../compute/tensor/index.ts";
import type { Address, Addressed } from "../../runtime/index.ts";

/** Gives a sent tensor to its receiver; if that actor ends before it attaches it, the runtime releases it by this owner. */
export function sentTo({ address }: Addressed): RefOptions {
  return { owner: recipientName(address) };
}

/** Owner name of tensors sent to one incarnation of an actor; unique across systems. */
export function recipientName({ system, name, incarnation }: Omit<Address, "uid" | "lanes">): string {
  return `${system} ${name}#${incarnation}`;
}
