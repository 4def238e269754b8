import { refCodec, type Sender } from "../messaging/actor-ref.ts";
import { type Codec, CodecSet } from "../transport/codec.ts";
import type { MessageOrder } from "../transport/link.ts";
import { LinkOpener, type ProcessSupport } from "../transport/link-opener.ts";

/** What the module named by `preload` may export. */
export interface Preload {
  /** Taught to every actor of the system. */
  readonly codecs?: readonly Codec[];
  /** Called, in the thread that finds it out, with each message that will not be handled. */
  onUndelivered?(message: unknown): void;
  /** What placement "process" needs. */
  readonly processes?: ProcessSupport;
  /** What goes beside messages between threads. */
  readonly order?: MessageOrder;
}

/** Imports the preload module, if there is one. */
export async function loadPreload(url: string | undefined): Promise<Preload> {
  return url === undefined ? {} : ((await import(url)) as Preload);
}

/** What an actor or the system gains by the preload module; before it is loaded, messages hold plain data and refs alone. */
export class Preloaded {
  readonly codecs: CodecSet;
  readonly opener = new LinkOpener(
    () => this.processes,
    () => this.#module.order,
  );
  readonly #url: string | undefined;
  #loading: Promise<void> | undefined;
  #module: Preload = {};

  /** @param holder - of the refs that come in messages */
  constructor(url: string | undefined, holder: () => Sender) {
    this.codecs = new CodecSet([refCodec(holder)]);
    this.#url = url;
  }

  /** Loads the module, once. */
  load(): Promise<void> {
    this.#loading ??= this.#load();
    return this.#loading;
  }

  /** What placement "process" needs, where the module gives it. */
  get processes(): ProcessSupport | undefined {
    return this.#module.processes;
  }

  /** Tells the module of a message that will not be handled; its own errors become warnings. */
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
