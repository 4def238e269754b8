import type { Addressed } from "../runtime/index.ts";
import type { RefOptions } from "../tensor/index.ts";

/**
 * Marks a tensor under way as belonging to the actor it is sent to: when that actor ends before it has attached it, the
 * runtime releases it by this name.
 */
export function sentTo({ address }: Addressed): RefOptions {
  return { owner: recipientName(address.name, address.incarnation) };
}

/** The name under which tensors on their way to one incarnation of an actor are released. */
export function recipientName(actor: string, incarnation: number): string {
  return `${actor}#${incarnation}`;
}
