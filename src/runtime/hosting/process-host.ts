import { MessageChannel, type MessagePort } from "node:worker_threads";
import { systemClock } from "../clock.ts";
import { boardSizeBytes } from "../inspection/status-board.ts";
import { toFailure } from "../protocol/failure.ts";
import { blankRecord, type Outgoing, RecordType } from "../protocol/record.ts";
import { Hub } from "../transport/hub/hub.ts";
import { type ActorRoute, creditsAt, openPortRoute, type RouteEnd } from "../transport/hub/routes.ts";
import { type CreditsEnd, type LinkEnd, portsOf } from "../transport/link.ts";
import type { ProcessSupport } from "../transport/link-opener.ts";
import { type Packet, singlePacket } from "../transport/packet.ts";
import { portLinkEnds } from "../transport/port-link.ts";
import { Signal } from "../transport/signal.ts";
import { TcpDoor } from "../transport/tcp/tcp-door.ts";
import { UnixDoor } from "../transport/unix/unix-door.ts";
import { removeOwnedFolder } from "./owned-folder.ts";
import { packControl } from "./packed-control.ts";
import {
  type HostedBoot,
  type Joined,
  type News,
  type Order,
  type ProcessStart,
  unpackOrder,
} from "./process-orders.ts";
import type { WorkerHandle } from "./thread.ts";
import { WarmStandbys } from "./warm-standbys.ts";

const system = 0;

/** An actor of this process. */
interface Hosted {
  readonly boot: HostedBoot;
  readonly worker: WorkerHandle;
  readonly signal: Signal;
  /** Sends the actor a packet of the system's own. */
  readonly tell: (packet: Packet, transfer: readonly MessagePort[]) => void;
  readonly routes: ActorRoute[];
  /** Its board, if the system cannot read it. */
  readonly ownBoard: Uint8Array | undefined;
}

/** Carries out the system's orders in a process: starts actors, each in a thread, links them, and reports their ends. */
export class ProcessHost {
  readonly #processStart: ProcessStart;
  readonly #support: ProcessSupport | undefined;
  readonly #actors = new Map<number, Hosted>();
  readonly #standbys = new WarmStandbys();
  #hub: Hub | undefined;

  private constructor(start: ProcessStart, support: ProcessSupport | undefined) {
    this.#processStart = start;
    this.#support = support;
  }

  /** Opens the process's door and reports it ready. */
  static async open(start: ProcessStart, support: ProcessSupport | undefined): Promise<void> {
    const host = new ProcessHost(start, support);
    support?.enter?.(start.folder, start.index);
    const { index, folder, network, token, maxFrameBytes } = start;
    if (network !== undefined) support?.reachedAt?.(network.host);
    const door = network === undefined ? new UnixDoor(folder, index) : new TcpDoor(network);
    host.#hub = await Hub.open({
      index,
      token,
      maxFrameBytes,
      door,
      onControl: (_from, bytes) => host.#obey(unpackOrder(bytes)),
      onBeat: () => host.#reportBoards(),
      onLost: (index, error) => {
        if (index === system) host.#endWithSystem(error);
        else if (error !== undefined) host.#report({ kind: "corrupted", index, failure: toFailure(error) });
      },
    });
    host.#hub.know(system, start.systemAddress);
    host.#report({ kind: "ready", address: door.address });
  }

  #reportBoards(): void {
    const boards = [...this.#actors].flatMap(([uid, { ownBoard }]) =>
      ownBoard === undefined ? [] : [[uid, ownBoard.slice()] as const],
    );
    if (boards.length > 0) this.#report({ kind: "boards", nowMs: systemClock.now(), boards });
  }

  #obey(order: Order): void {
    if (order.kind === "prepareStandby") this.#standbys.prepareStandby(order.warmup);
    else if (order.kind === "start") this.#start(order.boot);
    else if (order.kind === "join") this.#join(order.left, order.right);
    else if (order.kind === "route") this.#openRoute(order.joined, order.end);
    else if (order.kind === "terminate") void this.#actors.get(order.uid)?.worker.terminate();
    else if (order.kind === "stack") void this.#tellStack(order.uid);
    else if (order.kind === "lost") this.#open.lose(order.index);
    else if (order.kind === "leave") void this.#leave();
    else this.#open.afterRoute(order.route, () => this.#actors.get(order.uid)?.tell(order.packet, []));
  }

  async #tellStack(uid: number): Promise<void> {
    this.#report({ kind: "stack", uid, stack: await this.#actors.get(uid)?.worker.stack?.() });
  }

  #start(boot: HostedBoot): void {
    const { port1, port2 } = new MessageChannel();
    const signal = new Signal();
    const credits = creditsAt(boot.systemRoute);
    const { address, moduleUrl, init, settings, systemRoute, resourceLimits, modules } = boot;
    const board = boot.board ?? new SharedArrayBuffer(boardSizeBytes);
    const worker = this.#standbys.take(
      {
        address,
        hasThread: true,
        moduleUrl,
        preloadUrl: this.#processStart.preloadUrl,
        init,
        isFromOtherProcess: true,
        settings,
        systemLink: this.#end(systemRoute, credits, port1),
        signal: signal.buffer,
        board,
      },
      { resourceLimits, modules },
    );
    const tell = (packet: Packet, transfer: readonly MessagePort[]): void => {
      port2.postMessage({ packet }, transfer);
      signal.ring(true);
    };
    const routes = [openPortRoute(this.#open, systemRoute, credits, port2, signal)];
    const ownBoard = board instanceof SharedArrayBuffer ? new Uint8Array(board) : undefined;
    this.#actors.set(address.uid, { boot, worker, signal, tell, routes, ownBoard });
    void worker.exited.then((error) => this.#exited(address.uid, error));
  }

  #exited(uid: number, error: Error | undefined): void {
    const actor = this.#actors.get(uid);
    this.#actors.delete(uid);
    if (actor === undefined) return;
    // The system's own route last, so that its end follows everything that the actor has sent.
    for (const route of actor.routes.toReversed()) route.close();
    this.#support?.onActorEnded?.(actor.boot.address);
    this.#report({ kind: "exited", uid, failure: error && toFailure(error) });
  }

  #join(left: Joined, right: Joined): void {
    const leftActor = this.#actors.get(left.uid);
    const rightActor = this.#actors.get(right.uid);
    // The system reports the end of one to the other.
    if (leftActor === undefined || rightActor === undefined) return;
    const [leftEnd, rightEnd] = portLinkEnds(leftActor.signal, rightActor.signal);
    sendLink(rightActor, right, rightEnd);
    sendLink(leftActor, left, leftEnd);
  }

  #openRoute(joined: Joined, end: RouteEnd): void {
    const actor = this.#actors.get(joined.uid);
    if (actor === undefined) {
      // It has ended meanwhile, and its last messages have been delivered.
      this.#open.openRoute(end.id, { ...end, deliver: () => {} });
      this.#open.closeRoute(end.id);
      return;
    }
    const { port1, port2 } = new MessageChannel();
    const credits = creditsAt(end);
    sendLink(actor, joined, this.#end(end, credits, port1));
    actor.routes.push(openPortRoute(this.#open, end, credits, port2, actor.signal));
  }

  #end({ side }: RouteEnd, credits: CreditsEnd, pipe: MessagePort): LinkEnd & { readonly kind: "packed" } {
    return { kind: "packed", side, credits, pipe, maxFrameBytes: this.#processStart.maxFrameBytes };
  }

  get #open(): Hub {
    return this.#hub as Hub;
  }

  #report(news: News): void {
    this.#open.control(system, packControl(news));
  }

  async #leave(): Promise<void> {
    await this.#open.leave(system);
    process.exit(0);
  }

  /**
   * Ends this process because its system is gone, and cleans up, because no other process will. It kills itself, because a
   * thread in native code would delay an exit.
   */
  #endWithSystem(corrupted: Error | undefined): void {
    // After a corrupted frame the system still lives, and other processes need the folder.
    if (corrupted === undefined) removeOwnedFolder(this.#processStart.folder);
    process.kill(process.pid, "SIGKILL");
  }
}

function sendLink(actor: Hosted, { peer }: Joined, end: LinkEnd): void {
  const record: Outgoing = { ...blankRecord, type: RecordType.link, body: { peer, end } };
  actor.tell(singlePacket(record), portsOf(end));
}
