import type { RefOptions } from "../../compute/tensor/index.ts";
import type { Address, Addressed } from "../../runtime/index.ts";

/**
 * Marks a tensor under way as belonging to the actor it is sent to: when that actor ends before it has attached it, the
 * runtime releases it by this name.
 */
export function sentTo({ address }: Addressed): RefOptions {
  return { owner: recipientName(address) };
}

/** The name under which tensors on their way to one incarnation of an actor are released: no other system's has it. */
export function recipientName({ system, name, incarnation }: Omit<Address, "uid" | "lanes">): string {
  return `${system} ${name}#${incarnation}`;
}
