import { type MessagePort, receiveMessageOnPort, type Transferable } from "node:worker_threads";
import type { Options } from "msgpackr";
import { Packr, Unpackr } from "msgpackr/pack";
import { type Clock, mostDrift, systemClock } from "../clock.ts";
import type { Credits } from "../mailbox/credits.ts";
import { ReportedCredits, reportBytes } from "../mailbox/reported-credits.ts";
import { frameFlag } from "./frame.ts";
import type { IpcEncoding } from "./ipc-codec.ts";
import type { Link, Parcel, Pipe } from "./link.ts";
import { checkPacket, type Packet, shiftTimes } from "./packet.ts";

// A new object for each packer, which keeps the shapes it has named in its options.
const packing = () => ({ sequential: true, moreTypes: true, useToJSON: false }) as Options;

const timeBytes = Float64Array.BYTES_PER_ELEMENT;

/**
 * One end of a link whose other end is in another process. Packets are packed here and unpacked there; the shape of a record
 * is sent the first time only. The hub between them never looks into the bytes. Between hosts, whose clocks do not agree, a
 * packet brings its time of posting, by which the receiver sets the others in it.
 */
export class PackedLink implements Link {
  readonly credits: Credits;
  readonly #pipe: Pipe;
  readonly #ipc: IpcEncoding;
  readonly #maxBytes: number;
  readonly #clock: Pick<Clock, "now">;
  #packer = newPacker();
  #isFresh = true;
  /** Least difference between the reading of a packet by this host's clock and its posting by the other's. */
  #leastLagMs = Number.POSITIVE_INFINITY;
  #readMs = 0;
  #unpacker = new Unpackr(packing());

  /** @param maxBytes - size limit of a packet, in bytes */
  constructor(
    credits: Credits,
    pipe: Pipe,
    ipc: IpcEncoding,
    maxBytes: number,
    clock: Pick<Clock, "now"> = systemClock,
  ) {
    this.credits = credits;
    this.#pipe = pipe;
    this.#ipc = ipc;
    this.#maxBytes = maxBytes;
    this.#clock = clock;
  }

  post(packet: Packet, transfer: readonly Transferable[], urgent: boolean): void {
    const { value, hasChanged } = this.#ipc.encode(packet);
    const bytes = this.#pack(value, transfer);
    const flags =
      (urgent ? frameFlag.urgent : 0) |
      (this.#isFresh ? frameFlag.fresh : 0) |
      (hasChanged ? frameFlag.exported : 0);
    this.#isFresh = false;
    this.#pipe.send({ flags, bytes });
  }

  listen(receive: (packet: Packet) => void, garbled: (error: Error) => void): void {
    this.#pipe.listen((parcel) => {
      const packet = this.#unpack(parcel, garbled);
      if (packet !== undefined) receive(packet);
    });
  }

  poll(): Packet | undefined {
    for (;;) {
      const parcel = this.#pipe.poll();
      if (parcel === undefined) return undefined;
      const packet = this.#unpack(parcel, () => {});
      if (packet !== undefined) return packet;
    }
  }

  close(): void {
    this.#pipe.close();
  }

  /** Puts the credit report and the time before the packed bytes if the two ends share no memory. */
  #withReport(packed: Uint8Array): Uint8Array<ArrayBuffer> {
    const sizeBytes = packed.length + (this.credits instanceof ReportedCredits ? reportBytes + timeBytes : 0);
    if (sizeBytes > this.#maxBytes)
      throw new Error(
        `a packet of at most ${this.#maxBytes} bytes: it has ${sizeBytes} and could not be cloned for another process`,
      );
    // The packer's own memory is a slab that it goes on writing to.
    if (!(this.credits instanceof ReportedCredits)) return new Uint8Array(packed);
    const bytes = new Uint8Array(sizeBytes);
    bytes.set(new Uint8Array(this.credits.report().buffer));
    new DataView(bytes.buffer).setFloat64(reportBytes, this.#clock.now());
    bytes.set(packed, reportBytes + timeBytes);
    return bytes;
  }

  /**
   * Packs a value and detaches the buffers that change owner. A packer that failed half-way has named shapes that the receiver will
   * never see, so it is replaced.
   */
  #pack(value: unknown, transfer: readonly Transferable[]): Uint8Array<ArrayBuffer> {
    try {
      const bytes = this.#withReport(this.#packer.pack(value));
      detachAll(transfer.filter((item) => item instanceof ArrayBuffer));
      return bytes;
    } catch (error) {
      this.#packer = newPacker();
      this.#isFresh = true;
      throw error;
    }
  }

  #unpack(parcel: Parcel, garbled: (error: Error) => void): Packet | undefined {
    if ("packet" in parcel) return parcel.packet;
    try {
      if ((parcel.flags & frameFlag.fresh) !== 0) this.#unpacker = new Unpackr(packing());
      const { credits } = this;
      // The credit report comes before the packed bytes.
      const bytes = credits instanceof ReportedCredits ? credits.hear(parcel.bytes) : parcel.bytes;
      if (bytes.length === 0) return undefined;
      return credits instanceof ReportedCredits
        ? this.#readTimed(bytes, parcel.flags)
        : this.#read(bytes, parcel.flags);
    } catch (error) {
      garbled(error as Error);
      return undefined;
    }
  }

  /** Reads a packet of another host, with all times in it on this host's clock. */
  #readTimed(timed: Uint8Array, flags: number): Packet {
    const sentMs = new DataView(timed.buffer, timed.byteOffset).getFloat64(0);
    const packet = this.#read(timed.subarray(timeBytes), flags);
    const nowMs = this.#clock.now();
    // A packet may have waited for its receiver: that counts against its deadlines.
    this.#leastLagMs = Math.min(this.#leastLagMs + (nowMs - this.#readMs) * mostDrift, nowMs - sentMs);
    this.#readMs = nowMs;
    shiftTimes(packet, this.#leastLagMs);
    return packet;
  }

  #read(packed: Uint8Array, flags: number): Packet {
    const packet = this.#unpacker.unpack(packed);
    return checkPacket((flags & frameFlag.exported) === 0 ? packet : this.#ipc.decode(packet));
  }
}

/** The pipe of an actor that has a thread of its own. */
export class PortPipe implements Pipe {
  readonly #port: MessagePort;

  constructor(port: MessagePort) {
    this.#port = port;
  }

  send(parcel: Parcel): void {
    this.#port.postMessage(parcel, "bytes" in parcel ? [parcel.bytes.buffer] : []);
  }

  listen(receive: (parcel: Parcel) => void): void {
    this.#port.on("message", receive);
  }

  poll(): Parcel | undefined {
    return receiveMessageOnPort(this.#port)?.message;
  }

  close(): void {
    this.#port.close();
  }
}

/**
 * Detaches all these buffers, or none if one of them cannot be: bytes cannot change owner between processes, but the sender has given
 * them up all the same.
 */
function detachAll(buffers: readonly ArrayBuffer[]): void {
  if (buffers.length > 0) structuredClone(undefined, { transfer: [...buffers] });
}

const newPacker = (): Packr => new Packr(packing());
