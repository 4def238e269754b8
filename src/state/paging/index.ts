export { BlockPresence } from "./block-presence.ts";
export {
  ALWAYS_PRESENT,
  AskedPresence,
  type Presence,
  type PresenceProtocol,
  whilePresent,
} from "./presence.ts";
