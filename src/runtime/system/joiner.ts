import { linkBetween } from "../hosting/placement.ts";
import type { ProcessPool } from "../hosting/process-pool.ts";
import type { Address } from "../protocol/address.ts";
import { blankRecord, type EndNews, type Outgoing, RecordType } from "../protocol/record.ts";
import { type LinkEnd, portsOf } from "../transport/link.ts";
import { singlePacket } from "../transport/packet.ts";
import type { ActorRecord } from "./actor-record.ts";

/** Parts of the system that {@link Joiner} uses. */
export interface JoinerOptions {
  readonly processes: ProcessPool;
  /** Whether links within one thread refuse the messages that links between threads refuse. */
  readonly isStrict: boolean;
  /** Sends an actor a record of the runtime's own. */
  sendTo(record: ActorRecord, message: Partial<Outgoing> & Pick<Outgoing, "type">): void;
}

/** Links actors directly with each other, wherever they live, and notifies them of each other's ends. */
export class Joiner {
  readonly #options: JoinerOptions;

  constructor(options: JoinerOptions) {
    this.#options = options;
  }

  /** Links two living actors, once. */
  join(left: ActorRecord, right: ActorRecord): void {
    if (left.linked.has(right.address.uid)) return;
    const { host } = left.place;
    const route = host === right.place.host ? 0 : this.#joinByRoute(left, right);
    left.linked.set(right.address.uid, route);
    right.linked.set(left.address.uid, route);
    if (route !== 0) return;
    // An actor that writes to itself holds both ends: the receiving end gets a uid that no actor has.
    const sender = left === right ? { ...left.address, uid: -left.address.uid } : left.address;
    if (host !== undefined) {
      const [leftUid, rightUid] = [left.address.uid, right.address.uid];
      host.order({
        kind: "join",
        left: { uid: leftUid, peer: right.address },
        right: { uid: rightUid, peer: sender },
      });
      return;
    }
    const [leftEnd, rightEnd] = linkBetween(left.place, right.place, this.#options.isStrict);
    this.#sendLink(right, sender, rightEnd);
    this.#sendLink(left, right.address, leftEnd);
  }

  /** Notifies an actor of another's end, after the messages that the other still sent by another way. */
  notifyEnd(to: ActorRecord, news: EndNews): void {
    const { uid } = news;
    const message = { type: RecordType.down, body: news };
    const route = to.linked.get(uid) ?? 0;
    const { host } = to.place;
    if (route === 0) this.#options.sendTo(to, message);
    else if (host === undefined) {
      this.#options.processes.afterRoute(route, () => this.#options.sendTo(to, message));
    } else {
      const packet = singlePacket({ ...blankRecord, ...message });
      host.order({ kind: "tellAfter", uid: to.address.uid, route, packet });
    }
  }

  /** Links actors of two processes; returns the route between them. */
  #joinByRoute(left: ActorRecord, right: ActorRecord): number {
    const { processes } = this.#options;
    const [leftEnd, rightEnd] = processes.route(left.place, right.place);
    for (const [record, peer, end] of [
      [right, left, rightEnd],
      [left, right, leftEnd],
    ] as const) {
      const { place, address } = record;
      const joined = { uid: address.uid, peer: peer.address };
      if (place.host !== undefined) place.host.order({ kind: "route", joined, end });
      else this.#sendLink(record, peer.address, processes.open(end, place));
    }
    return leftEnd.id;
  }

  #sendLink(to: ActorRecord, peer: Address, end: LinkEnd): void {
    this.#options.sendTo(to, { type: RecordType.link, body: { peer, end }, transfer: portsOf(end) });
  }
}
