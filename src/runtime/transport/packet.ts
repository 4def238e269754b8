import type { Transferable } from "node:worker_threads";
import { TroupeError } from "../../errors/index.ts";
import type { LaneIndex } from "../protocol/lane.ts";
import type { Envelope, Outgoing, RecordType, Trace } from "../protocol/record.ts";

/**
 * Records in one flat array, which clones several times faster than many small objects. A run of messages that differ only in
 * their bodies is [header, kind, count, body, body, ...]; any other record is [header, kind, id, deadlineMs, trace, body].
 */
export type Packet = unknown[];

const laneShift = 8;
const encodedBit = 1 << 10;
const runBit = 1 << 11;

const runPrefix = 3;
const recordWidth = 6;

/** A record as it is read from a packet. */
export interface ReceivedRecord extends Envelope {
  readonly lane: LaneIndex;
  /** Whether a codec has encoded the body; otherwise it need not be searched. */
  readonly isEncoded: boolean;
}

/** Gathers records into a packet. */
export class PacketWriter {
  #packet: Packet = [];
  #transfer: Transferable[] = [];
  #runHeader = -1;
  #runKind = "";
  #runIndex = 0;

  get isEmpty(): boolean {
    return this.#packet.length === 0;
  }

  append(record: Outgoing): void {
    const { type, lane, isEncoded, id, kind, deadlineMs, trace, body, transfer } = record;
    const header = type | (lane << laneShift) | (isEncoded ? encodedBit : 0);
    if (transfer !== undefined) this.#transfer.push(...transfer);
    if (id === 0 && deadlineMs === 0 && trace === undefined) {
      this.#appendToRun(header | runBit, kind, body);
      return;
    }
    this.#runHeader = -1;
    this.#packet.push(header, kind, id, deadlineMs, trace, body);
  }

  /** Returns the packet and its transfer list, and begins another packet. */
  take(): { readonly packet: Packet; readonly transfer: readonly Transferable[] } {
    const taken = { packet: this.#packet, transfer: this.#transfer };
    this.#packet = [];
    if (this.#transfer.length > 0) this.#transfer = [];
    this.#runHeader = -1;
    return taken;
  }

  #appendToRun(header: number, kind: string, body: unknown): void {
    if (header === this.#runHeader && kind === this.#runKind) {
      (this.#packet[this.#runIndex + 2] as number)++;
      this.#packet.push(body);
      return;
    }
    this.#runHeader = header;
    this.#runKind = kind;
    this.#runIndex = this.#packet.length;
    // Most packets have one message: make those at their final size.
    if (this.#runIndex === 0) this.#packet = [header, kind, 1, body];
    else this.#packet.push(header, kind, 1, body);
  }
}

/** Checks that an unpacked value is a packet, before anything in it is used. @throws {TroupeError} `FRAME_INVALID` */
export function checkPacket(unpacked: unknown): Packet {
  if (!Array.isArray(unpacked)) throw noPacket("an array", typeof unpacked);
  for (let offset = 0; offset < unpacked.length; ) {
    const [header, kind, count] = unpacked.slice(offset, offset + runPrefix) as unknown[];
    if (!Number.isInteger(header) || typeof kind !== "string")
      throw noPacket(`a record at ${offset}`, `${typeof header}, ${typeof kind}`);
    const isRun = ((header as number) & runBit) !== 0;
    if (isRun && !(Number.isInteger(count) && (count as number) > 0))
      throw noPacket(`a count at ${offset}`, String(count));
    offset += isRun ? runPrefix + (count as number) : recordWidth;
    if (offset > unpacked.length)
      throw noPacket(`records within ${unpacked.length} items`, `one up to ${offset}`);
  }
  return unpacked;
}

function noPacket(expected: string, got: string): TroupeError {
  return new TroupeError("FRAME_INVALID", {
    where: "packet",
    expected,
    got,
    hint: "the other end is not a process of this system, or has another version",
  });
}

/** Brings the times in a packet, deadlines and times of sending, from a clock that is `laterMs` behind to this process's, in place. */
export function shiftTimes(packet: Packet, laterMs: number): void {
  for (let offset = 0; offset < packet.length; ) {
    if (((packet[offset] as number) & runBit) !== 0) {
      offset += runPrefix + (packet[offset + 2] as number);
      continue;
    }
    const deadlineMs = packet[offset + 3] as number;
    const trace = packet[offset + 4] as Trace | undefined;
    if (deadlineMs !== 0) packet[offset + 3] = deadlineMs + laterMs;
    if (trace !== undefined) packet[offset + 4] = [trace[0], trace[1], trace[2] + laterMs] satisfies Trace;
    offset += recordWidth;
  }
}

/** Calls `visit` with each record of a packet, in order. */
export function readPacket(packet: Packet, visit: (record: ReceivedRecord) => void): void {
  for (let offset = 0; offset < packet.length; ) {
    const header = packet[offset] as number;
    const kind = packet[offset + 1] as string;
    const type = (header & 0xff) as RecordType;
    const lane = ((header >> laneShift) & 3) as LaneIndex;
    const isEncoded = (header & encodedBit) !== 0;
    if ((header & runBit) === 0) {
      const id = packet[offset + 2] as number;
      const deadlineMs = packet[offset + 3] as number;
      const trace = packet[offset + 4] as Trace | undefined;
      visit({ type, lane, isEncoded, id, kind, deadlineMs, trace, body: packet[offset + 5] });
      offset += recordWidth;
      continue;
    }
    const end = offset + runPrefix + (packet[offset + 2] as number);
    for (let index = offset + runPrefix; index < end; index++)
      visit({ type, lane, isEncoded, id: 0, kind, deadlineMs: 0, trace: undefined, body: packet[index] });
    offset = end;
  }
}

/** Makes a packet of one record. */
export function singlePacket(record: Outgoing): Packet {
  const writer = new PacketWriter();
  writer.append(record);
  return writer.take().packet;
}
