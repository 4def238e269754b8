import { type Boot, hostActor } from "../actor/actor-host.ts";
import type { Cell } from "../actor/cell.ts";
import type { Clock } from "../clock.ts";
import type { Placement } from "../protocol/spawn.ts";
import type { LinkEnd } from "../transport/link.ts";
import { MemoryLink } from "../transport/memory-link.ts";
import { portLinkEnds } from "../transport/port-link.ts";
import type { Signal } from "../transport/signal.ts";
import type { HostProcess } from "./host-process.ts";
import type { WorkerHandle } from "./thread.ts";

/**
 * Makes both ends of a link between two actors of this process.
 * @param strict - whether a link within one thread refuses messages that one between threads would refuse
 */
export function linkBetween(left: LinkPlace, right: LinkPlace, strict: boolean): [LinkEnd, LinkEnd] {
  if (left.placement === "thread" || right.placement === "thread")
    return portLinkEnds(left.signal, right.signal);
  const [leftEnd, rightEnd] = MemoryLink.pair(strict);
  return [
    { kind: "memory", link: leftEnd },
    { kind: "memory", link: rightEnd },
  ];
}

/** The place of an actor, as far as links need it. */
export interface LinkPlace {
  readonly placement: Placement;
  /** Signal of its thread; unused if that is in another process. */
  readonly signal: Signal;
  /** The process it lives in; undefined for this one. */
  readonly host?: HostProcess | undefined;
}

/** Starts an actor on the main thread. */
export function startOnMain(boot: Boot, clock: Clock): WorkerHandle {
  const exited = Promise.withResolvers<undefined>();
  let cell: Cell | undefined;
  const onCell = (made: Cell): void => {
    cell = made;
  };
  void hostActor(boot, { clock, onCell, onEnd: () => exited.resolve(undefined) });
  return {
    exited: exited.promise,
    terminate: () => {
      cell?.lifecycle.abandon();
      exited.resolve(undefined);
      return exited.promise.then(() => {});
    },
  };
}
