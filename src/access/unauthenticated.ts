import type { Server } from "node:http";
import type { Socket } from "node:net";

/**
 * Bounds the connections of callers that have shown nothing yet, so that they can neither take the descriptors which files
 * need nor keep out whoever may come in: where one more comes, the one that has stood there longest goes.
 * @param most - unauthenticated connections at once
 * @returns admits a caller: its connection counts no more
 */
export function boundUnauthenticated(server: Server, most: number): (caller: Socket) => void {
  // In the order in which they came.
  const unauthenticated = new Set<Socket>();
  server.on("connection", (socket) => {
    unauthenticated.add(socket);
    socket.once("close", () => unauthenticated.delete(socket));
    if (unauthenticated.size <= most) return;
    for (const longest of unauthenticated) {
      unauthenticated.delete(longest);
      longest.destroy();
      break;
    }
  });
  return (caller) => {
    unauthenticated.delete(caller);
  };
}

/** How long a caller may take for the head of a request, and how often that is looked at: Node itself looks twice a minute. */
export const callerLimits = {
  maxHeaderSize: 8192,
  headersTimeout: 5_000,
  connectionsCheckingInterval: 1_000,
} as const;
