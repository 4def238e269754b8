import type { Lane } from "./lane.ts";

/** Where one incarnation of one actor is reached: plain data, never reused. */
export interface Address {
  /** Names its system among all of the process, and of its machine. */
  readonly system: string;
  /** Unique among all actors a system ever starts; 0 is the system itself. */
  readonly uid: number;
  readonly name: string;
  /** 1 for the first incarnation under this name, one more for each restart. */
  readonly incarnation: number;
  /** Lanes of the kinds that are not `data`. */
  readonly lanes: Readonly<Record<string, Lane>>;
}

/** Whatever knows an address, whatever its protocol: what watch, connect and stop need. */
export interface Addressed {
  readonly address: Address;
}

/** `name#incarnation`, as people read it in errors and events. */
export function describe(address: Pick<Address, "name" | "incarnation">): string {
  return `${address.name}#${address.incarnation}`;
}

/** The system's own address: every actor has a link to it from the start. */
export const systemAddress: Address = { system: "", uid: 0, name: "system", incarnation: 1, lanes: {} };
