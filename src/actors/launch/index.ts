/** Runs over several hosts: a launcher starts a process on each, and they find each other. The only entry to this room. */

export { Head } from "./head.ts";
export type { Launch, MasterAddress } from "./launch.ts";
export { HEARTBEAT_MS, heartbeatOf } from "./launch.ts";
export { ownMeans } from "./means.ts";
export { type MemberOptions, takePart } from "./member.ts";
export { readLaunch } from "./read-launch.ts";
export type { RefusedHost } from "./refused-hosts.ts";
export { readTrust, type Trust } from "./trust.ts";
