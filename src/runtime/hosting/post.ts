import type { Frame } from "../transport/frame.ts";
import { Hub } from "../transport/hub/hub.ts";
import { type Network, TcpDoor } from "../transport/tcp/tcp-door.ts";

/** As whom it answers. */
const head = 0;

/** How a post is made. */
export interface PostOptions {
  /** How this host is reached: its processes reach the post in the same way. */
  readonly network: Network;
  readonly token: string;
  readonly maxFrameBytes: number;
  /** Passes on to the head what one of the processes says. */
  toHead(frame: Frame, process: number): void;
  /** One of the processes can be heard no more; `error` as in `HubOptions.onLost`. All that it said has been passed on. */
  onLost(process: number, error: Error | undefined): void;
}

/**
 * Stands in for the head before the processes of another host, which take it for the head itself. So the head has one connection with each
 * host and not with each process, and hears signs of life of hosts alone: those of the processes are heard here.
 */
export class Post {
  readonly #gone = new Map<number, PromiseWithResolvers<void>>();
  #hub: Hub | undefined;

  static async open({ network, token, maxFrameBytes, toHead, onLost }: PostOptions): Promise<Post> {
    const post = new Post();
    post.#hub = await Hub.open({
      index: head,
      door: new TcpDoor({ ...network, port: 0 }),
      token,
      maxFrameBytes,
      onControl: () => {},
      passOn: (process, frame) => {
        toHead(frame, process);
        return true;
      },
      onLost: (process, error) => {
        onLost(process, error);
        post.#goneOf(process).resolve();
      },
    });
    return post;
  }

  /** What processes call it by, in place of the head. */
  get address(): string {
    return this.#open.address;
  }

  /** Gives one of the processes what the head says to it. */
  deliver(frame: Frame): void {
    this.#open.pass(frame.of, frame);
  }

  /** Resolves when a process that has called can be heard no more, and all that it said has been passed on. */
  gone(process: number): Promise<void> {
    return this.#goneOf(process).promise;
  }

  /** Takes no more calls; the processes that are left take that for the end of the head. */
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
