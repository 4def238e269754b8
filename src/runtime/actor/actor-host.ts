import { showUserCalls, TroupeError } from "../../errors/index.ts";
import { type Clock, systemClock } from "../clock.ts";
import { boardSizeBytes, StatusBoard } from "../inspection/status-board.ts";
import { makeTracer } from "../messaging/tracer.ts";
import type { Address } from "../protocol/address.ts";
import { toFailure } from "../protocol/failure.ts";
import { blankRecord, RecordType } from "../protocol/record.ts";
import type { Span } from "../protocol/runtime-event.ts";
import type { MessagingSettings } from "../protocol/settings.ts";
import type { LinkEnd } from "../transport/link.ts";
import type { LinkOpener } from "../transport/link-opener.ts";
import { singlePacket } from "../transport/packet.ts";
import type { MemoryPlace } from "../transport/shared-memory.ts";
import { Signal } from "../transport/signal.ts";
import { Cell } from "./cell.ts";
import { createContext } from "./create-context.ts";
import type { ActorDefinition } from "./define-actor.ts";
import type { End } from "./lifecycle.ts";
import { Preloaded } from "./preload.ts";

/** The data from which a thread starts an actor: plain data and shared memory. */
export interface Boot {
  readonly address: Omit<Address, "lanes">;
  /** Whether the actor has a thread of its own and may block it. */
  readonly hasThread: boolean;
  readonly moduleUrl: string;
  /** Imported before the actor's module, in every thread. */
  readonly preloadUrl: string | undefined;
  /** Encoded by the system's codecs. */
  readonly init: unknown;
  /** Whether `init` comes from another process. */
  readonly isFromOtherProcess?: boolean;
  readonly settings: MessagingSettings;
  readonly systemLink: LinkEnd;
  readonly signal: SharedArrayBuffer;
  readonly board: SharedArrayBuffer | MemoryPlace;
}

/** Options of {@link hostActor}. */
export interface HostOptions {
  /** Called once, when the actor has ended by itself. */
  onEnd(end: End): void;
  /** Called with the actor's cell as soon as it is made. */
  onCell?(cell: Cell): void;
  readonly clock?: Clock;
}

/** Loads the actor's module into this thread and starts the actor. If loading fails, the actor has failed. */
export async function hostActor(boot: Boot, options: HostOptions): Promise<void> {
  let cell: Cell;
  const preloaded = new Preloaded(boot.preloadUrl, () => cell.endpoint.outbox);
  const { codecs, opener } = preloaded;
  try {
    await preloaded.load();
    const definition = await loadDefinition(boot.moduleUrl);
    cell = makeCell(boot, preloaded, definition, options);
    options.onCell?.(cell);
    const context = createContext<unknown>(cell);
    const init = boot.isFromOtherProcess === true ? opener.ipc.decode(boot.init) : boot.init;
    await cell.start(() => definition.start(context, codecs.decode(init)));
  } catch (error) {
    const failure = toFailure(error, `${boot.address.name}#${boot.address.incarnation}`);
    opener
      .open(boot.systemLink)
      .post(singlePacket({ ...blankRecord, type: RecordType.failed, body: failure }), [], true);
    options.onEnd({ kind: "failed", failure });
  }
}

async function loadDefinition(url: string): Promise<ActorDefinition<unknown, unknown>> {
  const module = (await import(url)) as { default?: ActorDefinition<unknown, unknown> };
  if (typeof module.default?.start === "function") return module.default;
  throw new TroupeError("ACTOR_MODULE_INVALID", {
    where: "spawn",
    expected: "a module whose default export is defineActor({...})",
    got: `${url}, which exports none`,
    hint: "add export default defineActor({...})",
    fields: { url },
  });
}

function makeCell(
  boot: Boot,
  preloaded: Preloaded,
  definition: ActorDefinition<unknown, unknown>,
  { onEnd, clock = systemClock }: HostOptions,
): Cell {
  const { codecs, opener } = preloaded;
  const report = (span: Span): void => cell.endpoint.outbox.emit(cell.system, RecordType.span, span);
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
    onUndelivered: (message) => preloaded.onUndelivered(message),
  });
  // A thread with several actors cannot say which of them made the call.
  if (boot.hasThread) showUserCalls((call) => cell.board.setCall(call));
  return cell;
}

function boardMemory(board: Boot["board"], opener: LinkOpener): Uint8Array {
  return board instanceof SharedArrayBuffer ? new Uint8Array(board) : opener.map(board, boardSizeBytes);
}
