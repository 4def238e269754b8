import type { Address } from "./address.ts";

/** The system's own address: every actor has a link to it from the start. */
export const systemAddress: Address = { system: "", uid: 0, name: "system", incarnation: 1, lanes: {} };
