import type { Server } from "node:http";
import type { Socket } from "node:net";

/**
 * Bounds the connections of callers that have shown nothing yet, so that they can neither take the descriptors which files
 * need nor keep out whoever may come in: where one more comes, the one that has stood there longest goes.
 * @param most - connections of strangers at once
 * @returns admits a caller: its connection is a stranger's no more
 */
export function boundUnauthenticated(server: Server, most: number): (caller: Socket) => void {
  // In the order in which they came.
  const strangers = new Set<Socket>();
  server.on("connection", (socket) => {
    strangers.add(socket);
    socket.once("close", () => strangers.delete(socket));
    if (strangers.size <= most) return;
    for (const longest of strangers) {
      strangers.delete(longest);
      longest.destroy();
      break;
    }
  });
  return (caller) => {
    strangers.delete(caller);
  };
}

/** How long a caller may take for the head of a request, and how often that is looked at: Node itself looks twice a minute. */
export const callerLimits = {
  maxHeaderSize: 8192,
  headersTimeout: 5_000,
  connectionsCheckingInterval: 1_000,
} as const;
