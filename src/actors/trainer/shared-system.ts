import type { RuntimeSettings } from "../../job/options/index.ts";
import { ActorSystem, type HostsOptions, type Network, type PartOptions } from "../../runtime/index.ts";
import { HEARTBEAT_MS } from "../launch/index.ts";
import { preloads } from "../preload/index.ts";

/** Largest part that a shard saves of one block, if tensors cross in messages as bytes. */
const MAX_PART_BYTES = 2 ** 31;

/** Processes without shared memory reach each other as those of several hosts do. */
const OWN_HOST: Network = {
  host: "127.0.0.1",
  // Sockets show the end of a process at once; the main threads of a busy machine may be late.
  heartbeat: { everyMs: HEARTBEAT_MS, lostAfter: 50 },
};

const preloadOf = {
  alias: preloads.oneHost,
  shared: preloads.oneHost,
  hosts: preloads.severalHosts,
  gloo: preloads.apart,
  nccl: preloads.apart,
};

/** How actors of several hosts reach each other. */
export interface SystemHosts {
  readonly network: Network;
  readonly hosts: HostsOptions;
}

/**
 * The one actor system of a runtime: its runs and the user's actors are parts of it, and reach each other. It is opened with
 * the first part and closed with the last.
 */
export class SharedSystem {
  readonly #settings: RuntimeSettings;
  #parts: ActorSystem[] = [];

  constructor(settings: RuntimeSettings) {
    this.#settings = settings;
  }

  /** Opens a part, which its owner stops. @param hosts - the other hosts, for the first part */
  part(options: PartOptions, hosts?: SystemHosts): ActorSystem {
    this.#parts = this.#parts.filter(({ isStopped }) => !isStopped);
    const [open] = this.#parts;
    const part = open?.part(options) ?? this.#open(options, hosts);
    this.#parts.push(part);
    return part;
  }

  #open(options: PartOptions, hosts: SystemHosts | undefined): ActorSystem {
    const { layout, telemetry } = this.#settings;
    const isApart = layout.carrier !== "alias" && layout.carrier !== "shared";
    return new ActorSystem({
      ...options,
      preload: preloadOf[layout.carrier],
      messaging: { traceEvery: telemetry.traceEvery, ...(isApart && { maxFrameBytes: MAX_PART_BYTES }) },
      ...(isApart && { network: OWN_HOST }),
      ...hosts,
    });
  }
}
