export { BlockPresence } from "./block-presence.ts";
export { ALWAYS_PRESENT, AskedPresence, type Presence, whilePresent } from "./presence.ts";
