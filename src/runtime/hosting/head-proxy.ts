import type { Frame } from "../transport/frame.ts";
import { Hub } from "../transport/hub/hub.ts";
import { type Network, TcpDoor } from "../transport/tcp/tcp-door.ts";

/** Index of the head, which this hub stands in for. */
const head = 0;

/** Options of a {@link HeadProxy}. */
export interface HeadProxyOptions {
  /** How other processes reach this host. */
  readonly network: Network;
  readonly token: string;
  readonly maxFrameBytes: number;
  /** Relays a frame of one of the processes to the head. */
  toHead(frame: Frame, process: number): void;
  /** The connection from one of the processes has ended, after all its frames were relayed; `error` as in `HubOptions.onLost`. */
  onLost(process: number, error: Error | undefined): void;
}

/**
 * Stands in for the head on another host: the processes there connect to it as if it were the head. Thus the head has one
 * connection to each host, not to each process, and receives heartbeats of hosts only; those of the processes end here.
 */
export class HeadProxy {
  readonly #gone = new Map<number, PromiseWithResolvers<void>>();
  #hub: Hub | undefined;

  static async open({ network, token, maxFrameBytes, toHead, onLost }: HeadProxyOptions): Promise<HeadProxy> {
    const proxy = new HeadProxy();
    proxy.#hub = await Hub.open({
      index: head,
      door: new TcpDoor({ ...network, port: 0 }),
      token,
      maxFrameBytes,
      onControl: () => {},
      relay: (process, frame) => {
        toHead(frame, process);
        return true;
      },
      onLost: (process, error) => {
        onLost(process, error);
        proxy.#goneOf(process).resolve();
      },
    });
    return proxy;
  }

  /** The address that processes call instead of the head's. */
  get address(): string {
    return this.#open.address;
  }

  /** Relays a frame of the head to one of the processes. */
  deliver(frame: Frame): void {
    this.#open.pass(frame.of, frame);
  }

  /** Resolves when the connection from a process has ended and all its frames were relayed. */
  gone(process: number): Promise<void> {
    return this.#goneOf(process).promise;
  }

  /** Closes all connections; the remaining processes take that for the end of the head. */
  close(): void {
    this.#open.close();
  }

  #goneOf(process: number): PromiseWithResolvers<void> {
    const gone = this.#gone.get(process) ?? Promise.withResolvers<void>();
    this.#gone.set(process, gone);
    return gone;
  }

  get #open(): Hub {
    return this.#hub as Hub;
  }
}
