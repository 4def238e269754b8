import type { Lane } from "./lane.ts";

/** The address of one incarnation of one actor. Plain data, never reused. */
export interface Address {
  /** Id of its system, unique on the machine. */
  readonly system: string;
  /** Unique among all actors a system ever starts; 0 is the system itself. */
  readonly uid: number;
  readonly name: string;
  /** 1 for the first incarnation under this name, one more for each restart. */
  readonly incarnation: number;
  /** Lanes of the kinds that are not `data`. */
  readonly lanes: Readonly<Record<string, Lane>>;
}

/** Anything that has an address, whatever its protocol. `watch`, `connect` and `stop` take it. */
export interface Addressed {
  readonly address: Address;
}

/** Returns `name#incarnation`, as errors and events show it. */
export function describe(address: Pick<Address, "name" | "incarnation">): string {
  return `${address.name}#${address.incarnation}`;
}

/** The system's own address: every actor has a link to it from the start. */
export const systemAddress: Address = { system: "", uid: 0, name: "system", incarnation: 1, lanes: {} };
