import { type MessagePort, receiveMessageOnPort } from "node:worker_threads";
import { Queue } from "../../mailbox/queue.ts";
import { reportBytes } from "../../mailbox/reported-credits.ts";
import { frameFlag } from "../frame.ts";
import type { CreditsEnd, CreditsPlan, Parcel, Pipe } from "../link.ts";
import type { Signal } from "../signal.ts";
import type { Hub } from "./hub.ts";

/** One end of a link between two processes, as the system plans it. Plain data. */
export interface RouteEnd {
  /** Unique in the system. */
  readonly id: number;
  /** The process at the other end. */
  readonly peer: number;
  /** Address of that process's door. */
  readonly peerAddress: string;
  readonly side: 0 | 1;
  readonly credits: CreditsPlan;
}

/** Returns the credit counters of the actor at this end of a route. */
export function creditsAt({ credits }: RouteEnd): CreditsEnd {
  return "reportEvery" in credits ? { ...credits, taken: new SharedArrayBuffer(reportBytes) } : credits;
}

/** Ends a route, after a last report of what its actor has taken. */
function endRoute(hub: Hub, id: number, credits: CreditsEnd): void {
  if ("taken" in credits) hub.send(id, new Uint8Array(credits.taken).slice(), 0);
  hub.closeRoute(id);
}

/** A route that ends with its actor. */
export interface ActorRoute {
  /** Closes the route of an actor that has ended, after sending what it posted last. */
  close(): void;
}

/** Opens a route on `port`, of which the actor has the other end; what arrives rings the signal of the actor's thread. */
export function openPortRoute(
  hub: Hub,
  { id, peer, peerAddress }: RouteEnd,
  credits: CreditsEnd,
  port: MessagePort,
  signal: Signal,
): ActorRoute {
  const send = (parcel: Parcel) => {
    if ("bytes" in parcel) hub.send(id, parcel.bytes, parcel.flags);
  };
  port.on("message", send);
  port.on("close", () => endRoute(hub, id, credits));
  hub.openRoute(id, {
    peer,
    peerAddress,
    deliver(bytes, flags) {
      port.postMessage({ flags, bytes }, [bytes.buffer]);
      signal.ring((flags & frameFlag.urgent) !== 0);
    },
  });
  return {
    close() {
      for (let left = receiveMessageOnPort(port); left !== undefined; left = receiveMessageOnPort(port))
        send(left.message);
      endRoute(hub, id, credits);
      port.close();
    },
  };
}

/** Opens a route. @returns the pipe of an actor that shares its thread with the hub */
export function openPipe(
  hub: Hub,
  { id, peer, peerAddress }: RouteEnd,
  credits: CreditsEnd,
  signal: Signal,
): Pipe {
  const inbound = new Queue<Parcel>();
  let receive: ((parcel: Parcel) => void) | undefined;
  hub.openRoute(id, {
    peer,
    peerAddress,
    deliver(bytes, flags) {
      signal.ring((flags & frameFlag.urgent) !== 0);
      if (receive === undefined) inbound.push({ flags, bytes });
      else receive({ flags, bytes });
    },
  });
  return {
    send(parcel) {
      if ("bytes" in parcel) hub.send(id, parcel.bytes, parcel.flags);
    },
    listen(to) {
      receive = to;
      for (let next = inbound.shift(); next !== undefined; next = inbound.shift()) to(next);
    },
    poll: () => inbound.shift(),
    close() {
      receive = undefined;
      endRoute(hub, id, credits);
    },
  };
}
