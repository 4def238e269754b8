import type { Tensor } from "../../tensor/index.ts";

/**
 * Where what a forward pass keeps for its backward may rest in between. The tape hands over what each call keeps as soon
 * as the call is over, and asks for it back in the reverse order.
 */
export interface Offloader<Ticket = unknown> {
  /**
   * Takes the memory of a tensor in. Whatever reads it before {@link bring} throws.
   * @param aliases - of one memory, over the whole of it; still the caller's
   * @returns undefined where the memory must stay where it is, because something else uses it too
   */
  keep(aliases: readonly Tensor[]): Ticket | undefined;
  /** It will be asked for soon. */
  expect(ticket: Ticket): void;
  /** Gives the tensors their memory back, as it was. */
  bring(ticket: Ticket): void;
  /** Nobody will ask for it. */
  drop(ticket: Ticket): void;
}
