import { refCodec, type Sender } from "../messaging/actor-ref.ts";
import { type Codec, CodecSet } from "../transport/codec.ts";
import type { MessageOrder } from "../transport/link.ts";
import { LinkOpener, type ProcessSupport } from "../transport/link-opener.ts";

/** Exports that the `preload` module may have. */
export interface Preload {
  /** Codecs for every actor of the system. */
  readonly codecs?: readonly Codec[];
  /** Called with each message that will not be handled, in the thread that notices it. */
  onUndelivered?(message: unknown): void;
  /** Support for placement "process". */
  readonly processes?: ProcessSupport;
  /** Data that accompanies messages between threads. */
  readonly order?: MessageOrder;
}

/** Imports the preload module, if there is one. */
export async function loadPreload(url: string | undefined): Promise<Preload> {
  return url === undefined ? {} : ((await import(url)) as Preload);
}

/** The preload module of an actor or the system. Before it is loaded, messages can hold plain data and refs only. */
export class Preloaded {
  readonly codecs: CodecSet;
  readonly opener = new LinkOpener(
    () => this.processes,
    () => this.#module.order,
  );
  readonly #url: string | undefined;
  #loading: Promise<void> | undefined;
  #module: Preload = {};

  /** @param holder - returns the sender of refs that arrive in messages */
  constructor(url: string | undefined, holder: () => Sender) {
    this.codecs = new CodecSet([refCodec(holder)]);
    this.#url = url;
  }

  /** Loads the module, once. */
  load(): Promise<void> {
    this.#loading ??= this.#load();
    return this.#loading;
  }

  /** Support for placement "process", if the module exports it. */
  get processes(): ProcessSupport | undefined {
    return this.#module.processes;
  }

  /** Passes a message that will not be handled to the module; the module's errors become warnings. */
  onUndelivered(message: unknown): void {
    try {
      this.#module.onUndelivered?.(message);
    } catch (error) {
      process.emitWarning(error instanceof Error ? error : String(error));
    }
  }

  async #load(): Promise<void> {
    this.#module = await loadPreload(this.#url);
    this.codecs.teach(this.#module.codecs ?? []);
  }
}
