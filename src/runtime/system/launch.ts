import type { Clock } from "../clock.ts";
import { type LinkPlace, linkBetween, startOnMain } from "../hosting/placement.ts";
import type { ProcessPool } from "../hosting/process-pool.ts";
import type { WorkerHandle } from "../hosting/thread.ts";
import type { WarmStandbys } from "../hosting/warm-standbys.ts";
import { boardSizeBytes, StatusBoard } from "../inspection/status-board.ts";
import type { Address } from "../protocol/address.ts";
import type { MessagingSettings } from "../protocol/settings.ts";
import type { SpawnPlace } from "../protocol/spawn.ts";
import type { LinkEnd } from "../transport/link.ts";
import type { LinkOpener } from "../transport/link-opener.ts";

/** Parts of the system that `launch` uses. */
export interface LaunchContext {
  readonly clock: Clock;
  readonly settings: MessagingSettings;
  readonly preloadUrl: string | undefined;
  readonly opener: LinkOpener;
  readonly processes: ProcessPool;
  /** Warm standbys in this process. */
  readonly standbys: WarmStandbys;
  /** Where the system itself lives. */
  readonly systemPlace: LinkPlace;
}

/** An incarnation that has been started. */
export interface Launched {
  readonly worker: WorkerHandle;
  readonly board: StatusBoard;
  /** The system's end of the link to it. */
  readonly systemEnd: LinkEnd;
}

/** Starts an incarnation in the place where it is to run. @param init - encoded by the system's codecs */
export function launch(
  context: LaunchContext,
  place: SpawnPlace,
  address: Address,
  init: unknown,
  linkPlace: LinkPlace,
): Launched {
  const { host } = linkPlace;
  if (host === undefined) return launchHere(context, place, address, init, linkPlace);
  const { clock, settings, opener, processes, systemPlace } = context;
  const encoded = opener.ipc.encode(init).value;
  const board = processes.boardOf(address.uid, host);
  const [systemRoute, actorRoute] = processes.route(systemPlace, linkPlace);
  const systemEnd = processes.open(systemRoute, systemPlace);
  const status = beginBoard(clock, board.bytes);
  const worker = host.start({
    address,
    moduleUrl: place.module.href,
    init: encoded,
    settings,
    systemRoute: actorRoute,
    board: board.place,
    resourceLimits: place.resourceLimits,
    modules: place.modules,
  });
  return { worker, board: status, systemEnd };
}

function launchHere(
  { clock, settings, preloadUrl, standbys, systemPlace }: LaunchContext,
  place: SpawnPlace,
  address: Address,
  init: unknown,
  linkPlace: LinkPlace,
): Launched {
  const { placement, signal } = linkPlace;
  const board = new SharedArrayBuffer(boardSizeBytes);
  const status = beginBoard(clock, new Uint8Array(board));
  const [systemEnd, systemLink] = linkBetween(systemPlace, linkPlace, settings.freezeMessages);
  const boot = {
    address,
    hasThread: placement === "thread",
    moduleUrl: place.module.href,
    preloadUrl,
    init,
    settings,
    systemLink,
    signal: signal.buffer,
    board,
  };
  return {
    worker: placement === "thread" ? standbys.take(boot, place) : startOnMain(boot, clock),
    board: status,
    systemEnd,
  };
}

/** Its thread may take long to write there itself: until then it has been starting since now. */
function beginBoard(clock: Clock, memory: Uint8Array): StatusBoard {
  const board = new StatusBoard(clock.now, memory);
  board.enter("starting");
  return board;
}
