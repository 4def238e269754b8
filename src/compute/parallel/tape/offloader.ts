import type { Tensor } from "../../tensor/index.ts";

/**
 * Holds tensors that a forward pass keeps for its backward. The tape hands over the tensors of each call as soon as the call is
 * over, and asks for them in reverse order.
 */
export interface Offloader<Ticket = unknown> {
  /**
   * Takes the memory of a tensor. Reading it before {@link bring} throws.
   * @param aliases - of one memory, each over all of it; still the caller's
   * @returns undefined if the memory must stay because something else uses it too
   */
  keep(aliases: readonly Tensor[]): Ticket | undefined;
  /** Announces that the ticket is needed soon. */
  expect(ticket: Ticket): void;
  /** Gives the tensors their memory back, as it was. */
  bring(ticket: Ticket): void;
  drop(ticket: Ticket): void;
}
