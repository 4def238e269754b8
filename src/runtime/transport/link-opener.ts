import { MessagePort } from "node:worker_threads";
import { TroupeError } from "../../errors/index.ts";
import { CreditCounters } from "../mailbox/credit-counters.ts";
import type { Credits } from "../mailbox/credits.ts";
import { ReportedCredits } from "../mailbox/reported-credits.ts";
import type { Address } from "../protocol/address.ts";
import { type IpcCodec, IpcEncoding } from "./ipc-codec.ts";
import type { CreditsEnd, Link, LinkEnd, MessageOrder } from "./link.ts";
import { PackedLink, PortPipe } from "./packed-link.ts";
import { PortLink } from "./port-link.ts";
import type { MapFile, MemoryPlace } from "./shared-memory.ts";

/** Files that make Node a server which forks processes. */
export interface ForkSupport {
  /** Path of the library that is preloaded into it (native/fork_server.c). */
  readonly library: string;
  /** Path of the addon that it loads, with all that this needs. */
  readonly addon: string;
}

/** Functions that placement "process" needs from outside the kernel. The preload module exports them as `processes`. */
export interface ProcessSupport {
  readonly mapFile: MapFile;
  readonly ipcCodec?: IpcCodec;
  /** Called in a process that starts others. Undefined: each is started by itself. */
  forks?(): ForkSupport | undefined;
  /**
   * Called once in every process, before any actor, with the folder for files that processes share. A file there whose name
   * begins with `p${index}-` is removed when the process ends.
   */
  enter?(folder: string, index: number): void;
  /** Called once in every process that others reach over a network, before any actor, with the address of its host. */
  reachedAt?(host: string): void;
  /** Called in the first process once the others have ended, before the folder is removed. */
  leave?(): void;
  /** Called in the process of an actor that has ended: resources in messages on their way to it may be released. */
  onActorEnded?(address: Omit<Address, "lanes">): void;
}

/** Opens the links of one thread, and maps memory that processes share. */
export class LinkOpener {
  readonly #support: () => ProcessSupport | undefined;
  readonly #mapped = new Map<string, ArrayBuffer>();
  readonly #order: () => MessageOrder | undefined;
  #ipc: IpcEncoding | undefined;

  /** @param support - called at the first link to another process @param order - called with packets to other threads */
  constructor(
    support: () => ProcessSupport | undefined,
    order: () => MessageOrder | undefined = () => undefined,
  ) {
    this.#support = support;
    this.#order = order;
  }

  /** Opens an actor's end of a link. */
  open(end: LinkEnd): Link {
    if (end.kind === "memory") return end.link;
    if (end.kind === "port") return new PortLink(end, this.#order);
    const pipe = end.pipe instanceof MessagePort ? new PortPipe(end.pipe) : end.pipe;
    return new PackedLink(this.credits(end.credits, end.side), pipe, this.ipc, end.maxFrameBytes);
  }

  /** Opens the credit counters of an end of a link. */
  credits(plan: CreditsEnd, side: 0 | 1): Credits {
    if ("reportEvery" in plan) return new ReportedCredits(plan.reportEvery, plan.taken);
    const { buffer, byteOffset } = this.map(plan, 0);
    return new CreditCounters(buffer, side, byteOffset);
  }

  /** The encoding of everything that this thread sends to or receives from other processes. */
  get ipc(): IpcEncoding {
    this.#ipc ??= new IpcEncoding(this.#support()?.ipcCodec);
    return this.#ipc;
  }

  /** Maps bytes that processes share into this thread. */
  map({ path, byteOffset }: MemoryPlace, sizeBytes: number): Uint8Array {
    const buffer = this.#mapped.get(path) ?? processSupport(this.#support()).mapFile(path);
    this.#mapped.set(path, buffer);
    return new Uint8Array(buffer, byteOffset, sizeBytes);
  }
}

/** Returns `support`. @throws {TroupeError} `PROCESS_UNSUPPORTED` if the preload module exports none */
export function processSupport(support: ProcessSupport | undefined): ProcessSupport {
  if (support !== undefined) return support;
  throw new TroupeError("PROCESS_UNSUPPORTED", {
    where: "spawn",
    expected: "a preload module that exports `processes`",
    got: "none",
    hint: 'name one, or use placement "thread"',
  });
}
