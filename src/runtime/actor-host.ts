import { TroupeError } from "../errors.ts";
import { createContext } from "./actor-context.ts";
import type { Address } from "./address.ts";
import { Cell, type End } from "./cell.ts";
import { type Clock, systemClock } from "./clock.ts";
import { type Codec, CodecSet } from "./codec.ts";
import { toFailure } from "./failure.ts";
import type { LinkEnd } from "./link.ts";
import { LinkOpener, type ProcessSupport } from "./link-opener.ts";
import { blankRecord, singlePacket } from "./packet.ts";
import type { ActorDefinition } from "./protocol.ts";
import { RecordType } from "./record.ts";
import { refCodec } from "./ref-codec.ts";
import type { MessagingSettings } from "./settings.ts";
import type { MemoryPlace } from "./shared-memory.ts";
import { Signal } from "./signal.ts";
import { boardSizeBytes, StatusBoard } from "./status-board.ts";
import { makeTracer, type Span } from "./tracer.ts";

/** What a thread needs to become an actor: plain data and shared memory. */
export interface Boot {
  readonly address: Omit<Address, "lanes">;
  /** Whether the actor has its thread to itself and may block it. */
  readonly hasThread: boolean;
  readonly moduleUrl: string;
  /** Imported before the actor's module, in every thread. */
  readonly preloadUrl: string | undefined;
  /** Encoded by the system's codecs. */
  readonly init: unknown;
  /** Whether `init` has crossed the border between processes. */
  readonly isFromAfar?: boolean;
  readonly settings: MessagingSettings;
  readonly systemLink: LinkEnd;
  readonly signal: SharedArrayBuffer;
  readonly board: SharedArrayBuffer | MemoryPlace;
}

/** What the module named by `preload` may export. */
export interface Preload {
  /** Taught to every actor of the system. */
  readonly codecs?: readonly Codec[];
  /** Called, in the thread that finds it out, with each message that will not be handled. */
  onUndelivered?(message: unknown): void;
  /** What placement "process" needs. */
  readonly processes?: ProcessSupport;
}

/** How an actor is hosted. */
export interface HostOptions {
  /** Called once, when the actor has ended by itself. */
  onEnd(end: End): void;
  /** Called with the actor's cell as soon as it is made. */
  onCell?(cell: Cell): void;
  readonly clock?: Clock;
}

/** Loads the actor's module into this thread and starts the actor; its failure to load is its failure. */
export async function hostActor(boot: Boot, options: HostOptions): Promise<void> {
  let support: ProcessSupport | undefined;
  const opener = new LinkOpener(() => support);
  try {
    const preload = await loadPreload(boot.preloadUrl);
    support = preload.processes;
    const definition = await loadDefinition(boot.moduleUrl);
    const codecs = new CodecSet([refCodec(() => cell.endpoint), ...(preload.codecs ?? [])]);
    const cell: Cell = makeCell(boot, preload, definition, codecs, opener, options);
    options.onCell?.(cell);
    const context = createContext<unknown>(cell);
    const init = boot.isFromAfar === true ? opener.border.enter(boot.init) : boot.init;
    await cell.start(() => definition.start(context, codecs.decode(init)));
  } catch (error) {
    const failure = toFailure(error, `${boot.address.name}#${boot.address.incarnation}`);
    opener
      .open(boot.systemLink)
      .post(singlePacket({ ...blankRecord, type: RecordType.failed, body: failure }), [], true);
    options.onEnd({ kind: "failed", failure });
  }
}

/** What the preload module wants to know of messages that will not be handled; its own errors become warnings. */
export function undeliveredHook(preload: Preload): (message: unknown) => void {
  return (message) => {
    try {
      preload.onUndelivered?.(message);
    } catch (error) {
      process.emitWarning(error instanceof Error ? error : String(error));
    }
  };
}

/** Imports the preload module, if there is one. */
export async function loadPreload(url: string | undefined): Promise<Preload> {
  return url === undefined ? {} : ((await import(url)) as Preload);
}

async function loadDefinition(url: string): Promise<ActorDefinition<unknown, unknown>> {
  const module = (await import(url)) as { default?: ActorDefinition<unknown, unknown> };
  if (typeof module.default?.start === "function") return module.default;
  throw new TroupeError(
    "ACTOR_MODULE_INVALID",
    `[spawn] a module whose default export is defineActor({...}): ${url} has none`,
    { fields: { url } },
  );
}

function makeCell(
  boot: Boot,
  preload: Preload,
  definition: ActorDefinition<unknown, unknown>,
  codecs: CodecSet,
  opener: LinkOpener,
  { onEnd, clock = systemClock }: HostOptions,
): Cell {
  const report = (span: Span): void => cell.endpoint.emit(cell.system, RecordType.span, span);
  const cell: Cell = new Cell({
    address: { ...boot.address, lanes: definition.lanes ?? {} },
    clock,
    signal: new Signal(boot.signal),
    board: new StatusBoard(clock.now, boardMemory(boot.board, opener)),
    codecs,
    opener,
    settings: boot.settings,
    systemLink: boot.systemLink,
    concurrent: definition.concurrent ?? [],
    mayBlock: boot.hasThread,
    tracer: makeTracer(boot.address, boot.settings, clock.now, report),
    onEnd,
    onUndelivered: undeliveredHook(preload),
  });
  return cell;
}

function boardMemory(board: Boot["board"], opener: LinkOpener): Uint8Array {
  return board instanceof SharedArrayBuffer ? new Uint8Array(board) : opener.map(board, boardSizeBytes);
}
