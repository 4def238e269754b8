import { native } from "./native.ts";

let isOn = false;

/**
 * Chooses how this thread computes forwards on the CPU: if `invariant`, each row of a product and each query of an attention on its
 * own, in an order that depends on nothing but the row. Its bits are then the same in any batch and at any place. Backward is not
 * affected.
 * @returns what it was before
 */
export function setInvariant(invariant: boolean): boolean {
  isOn = invariant;
  return native().setInvariant(invariant);
}

/** Whether this thread computes forwards invariantly, see {@link setInvariant}. */
export function isInvariant(): boolean {
  return isOn;
}
