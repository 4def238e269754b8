import { TroupeError } from "../../errors/index.ts";

/** What a frame says beside its bytes; or-ed together. */
export const frameFlag = {
  /** The receiver should look at it before its next message. */
  urgent: 1,
  /** The sender's packer has begun anew: what it named before means nothing any more. */
  fresh: 2,
  /** Something in it was made fit to leave its process, and is to be taken in. */
  exported: 4,
  /** The last of its route; it has no bytes. */
  last: 8,
  /** Says no more than that its sender is there, and when: a float64 of milliseconds on its clock. */
  beat: 16,
  /** Says why a call is not taken: the only frame that a call ever gets in answer. */
  refused: 32,
} as const;

/** Bytes on one route between two processes. */
export interface Frame {
  /** The process that it comes from or goes to, where the hub at the other end passes it on; 0 where it is that hub's own. */
  readonly of: number;
  readonly route: number;
  readonly flags: number;
  readonly bytes: Uint8Array<ArrayBuffer>;
}

/** Five words of 32 bits, little-endian: bytes that follow, route, flags, its number among the frames of its socket, and whose it is. */
export const frameHeaderBytes = 20;
const allFlags = Object.values(frameFlag).reduce((all, flag) => all | flag, 0);
const beatBytes = 8;

/**
 * The header of a frame; its bytes follow as they are.
 * @param sequence - how many frames its socket has brought before: by it the receiver sees that none is lost or comes twice
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

/**
 * Puts frames together again from what a socket brings, in whatever pieces. A frame's memory is taken when its header
 * has come, has been checked and is within the cap, and no sooner.
 */
export class FrameReader {
  #maxBytes: number;
  readonly #header = new Uint8Array(frameHeaderBytes);
  #body: Uint8Array<ArrayBuffer> | undefined;
  #numRead = 0;
  /** Frames begun, modulo 2^32. */
  #sequence = 0;

  /** @param maxBytes - the most that a frame may hold */
  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  /** From the next frame on each may hold so much. */
  allow(maxBytes: number): void {
    this.#maxBytes = maxBytes;
  }

  /**
   * Takes in a piece and hands each frame that is whole to `receive`, in order.
   * @throws {TroupeError} `FRAME_INVALID` for a header that cannot be; nothing after it means anything
   */
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
    throw new TroupeError(
      "FRAME_INVALID",
      {
        where: "frame",
        expected: `at most ${this.#maxBytes} bytes and known flags`,
        got: `${sizeBytes} bytes, flags ${flags}`,
        hint: "the other end is no process of this system, or of another version",
      },
      { fields: { sizeBytes, flags } },
    );
  }

  #count(sequence: number): void {
    const expected = this.#sequence;
    if (sequence !== expected) {
      throw new TroupeError(
        "FRAME_INVALID",
        {
          where: "frame",
          expected: `frame ${expected} of its socket`,
          got: `frame ${sequence}`,
          hint: "a frame was lost, or came twice: what was said cannot be relied on",
        },
        { fields: { expected, sequence } },
      );
    }
    this.#sequence = (expected + 1) % 2 ** 32;
  }
}
