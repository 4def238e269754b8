import { TroupeError } from "../../errors/index.ts";

/** Flags of a frame, combined by bitwise or. */
export const frameFlag = {
  /** The receiver should look at it before its next message. */
  urgent: 1,
  /** The sender's packer was restarted: record shapes that it named before are void. */
  fresh: 2,
  /** The IPC codec has encoded something in it, which the receiver has to decode. */
  exported: 4,
  /** The last of its route; it has no bytes. */
  last: 8,
  /** A heartbeat: its bytes are the time of sending, a float64 of milliseconds on the sender's clock. */
  beat: 16,
  /** The reason why a call is refused: the only frame that is ever sent back on a call. */
  refused: 32,
} as const;

/** Bytes on one route between two processes. */
export interface Frame {
  /** The process that it comes from or goes to, if the hub at the other end relays it; 0 if it is that hub's own. */
  readonly of: number;
  readonly route: number;
  readonly flags: number;
  readonly bytes: Uint8Array<ArrayBuffer>;
}

/**
 * Size of a frame's header: five little-endian words of 32 bits. They are the number of bytes that follow, the route, the
 * flags, the number of the frame on its socket, and {@link Frame.of}.
 */
export const frameHeaderBytes = 20;
const allFlags = Object.values(frameFlag).reduce((all, flag) => all | flag, 0);
const beatBytes = 8;

/**
 * Makes the header of a frame; the bytes of the frame follow it.
 * @param sequence - number of frames sent on this socket before, by which the receiver notices lost and repeated frames
 * @param of - see {@link Frame.of}
 */
export function frameHeader(
  sizeBytes: number,
  route: number,
  flags: number,
  sequence: number,
  of = 0,
): Uint8Array {
  return new Uint8Array(new Uint32Array([sizeBytes, route, flags, sequence, of]).buffer);
}

/** Assembles frames from a socket's pieces; allocates a frame only after its header has arrived and its size was checked. */
export class FrameReader {
  #maxBytes: number;
  readonly #header = new Uint8Array(frameHeaderBytes);
  #body: Uint8Array<ArrayBuffer> | undefined;
  #numRead = 0;
  /** Frames begun, modulo 2^32. */
  #sequence = 0;

  /** @param maxBytes - size limit of a frame, in bytes */
  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  /** Changes the size limit, from the next frame on. */
  allow(maxBytes: number): void {
    this.#maxBytes = maxBytes;
  }

  /** Reads a piece and passes on complete frames, in order. @throws {TroupeError} `FRAME_INVALID`: no more can be read */
  read(piece: Uint8Array, receive: (frame: Frame) => void): void {
    for (let offset = 0; offset < piece.length; ) {
      const target: Uint8Array = this.#body ?? this.#header;
      const part = piece.subarray(offset, offset + target.length - this.#numRead);
      target.set(part, this.#numRead);
      this.#numRead += part.length;
      offset += part.length;
      if (this.#numRead === target.length) this.#complete(receive);
    }
  }

  #complete(receive: (frame: Frame) => void): void {
    const words = new Uint32Array(this.#header.buffer);
    const [sizeBytes = 0, route = 0, flags = 0, sequence = 0, of = 0] = words;
    this.#numRead = 0;
    if (this.#body === undefined) {
      this.#check(sizeBytes, flags);
      this.#count(sequence);
      this.#body = new Uint8Array(sizeBytes);
      if (sizeBytes > 0) return;
    }
    const bytes = this.#body;
    this.#body = undefined;
    receive({ of, route, flags, bytes });
  }

  #check(sizeBytes: number, flags: number): void {
    const isOfItsSize =
      ((flags & frameFlag.last) === 0 || sizeBytes === 0) &&
      ((flags & frameFlag.beat) === 0 || sizeBytes === beatBytes);
    if (sizeBytes <= this.#maxBytes && (flags & ~allFlags) === 0 && isOfItsSize) return;
    throw new TroupeError("FRAME_INVALID", {
      where: "frame",
      expected: `at most ${this.#maxBytes} bytes and known flags`,
      got: `${sizeBytes} bytes, flags ${flags}`,
      hint: "the other end is not a process of this system, or has another version",
      fields: { sizeBytes, flags },
    });
  }

  #count(sequence: number): void {
    const expected = this.#sequence;
    if (sequence !== expected)
      throw new TroupeError("FRAME_INVALID", {
        where: "frame",
        expected: `frame ${expected} of its socket`,
        got: `frame ${sequence}`,
        hint: "a frame was lost or repeated, so the connection cannot be trusted",
        fields: { expected, sequence },
      });
    this.#sequence = (expected + 1) % 2 ** 32;
  }
}
