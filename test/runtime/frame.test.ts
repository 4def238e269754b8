import fc from "fast-check";
import { expect, test } from "vitest";
import {
  type Frame,
  FrameReader,
  frameFlag,
  frameHeader,
  frameHeaderBytes,
} from "../../src/runtime/transport/frame.ts";

const maxBytes = 1 << 10;

/** The frame as a socket carries it, as its so-manieth. */
function written({ of, route, flags, bytes }: Frame, sequence: number): Uint8Array {
  return Buffer.concat([frameHeader(bytes.length, route, flags, sequence, of), bytes]);
}

const frame = fc
  .record({
    of: fc.nat(0xffff_ffff),
    route: fc.nat(0xffff_ffff),
    flags: fc.constantFrom(0, frameFlag.urgent, frameFlag.fresh | frameFlag.exported),
    bytes: fc.uint8Array({ maxLength: maxBytes }),
  })
  .map((fields): Frame => ({ ...fields, bytes: new Uint8Array(fields.bytes) }));

test("frames come out as they went in, in whatever pieces the socket brings them", () => {
  fc.assert(
    fc.property(
      fc.array(frame),
      fc.array(fc.integer({ min: 1, max: 700 }), { minLength: 1 }),
      (frames, sizes) => {
        const stream = Buffer.concat(frames.map(written));
        const reader = new FrameReader(maxBytes);
        const received: Frame[] = [];
        for (let offset = 0, turn = 0; offset < stream.length; turn++) {
          const size = sizes[turn % sizes.length] as number;
          reader.read(stream.subarray(offset, offset + size), (each) => received.push(each));
          offset += size;
        }
        expect(received).toEqual(frames);
      },
    ),
    { seed: 5 },
  );
});

test.each([
  ["a size above the cap", frameHeader(maxBytes + 1, 1, 0, 0)],
  ["a size of four gigabytes", frameHeader(0xffff_ffff, 1, 0, 0)],
  ["flags nobody knows", frameHeader(0, 1, 1 << 9, 0)],
  ["an end that goes on", frameHeader(4, 1, frameFlag.last, 0)],
])("%s is refused at the header, before memory is taken for what follows", (_what, header) => {
  const reader = new FrameReader(maxBytes);
  expect(header).toHaveLength(frameHeaderBytes);
  expect(() => reader.read(header, () => expect.unreachable())).toThrow(
    expect.objectContaining({ code: "FRAME_INVALID" }),
  );
});

test.each([
  ["is lost", [0, 1, 3]],
  ["comes twice", [0, 1, 1]],
  ["comes early", [0, 2, 1]],
])("a frame that %s is refused where it shows, and nothing after it is believed", (_what, sequences) => {
  const reader = new FrameReader(maxBytes);
  const said: Frame = { of: 0, route: 3, flags: 0, bytes: Uint8Array.of(1, 2) };
  const received: Frame[] = [];
  const stream = Buffer.concat(sequences.map((sequence) => written(said, sequence)));
  expect(() => reader.read(stream, (each) => received.push(each))).toThrow(
    expect.objectContaining({ code: "FRAME_INVALID" }),
  );
  expect(received.length).toBeLessThan(sequences.length);
});

test("any bytes at all are frames within the cap, or refused", () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 4_000 }), (bytes) => {
      const reader = new FrameReader(maxBytes);
      try {
        reader.read(bytes, (each) => expect(each.bytes.length).toBeLessThanOrEqual(maxBytes));
      } catch (error) {
        expect(error).toMatchObject({ code: "FRAME_INVALID" });
      }
    }),
    { seed: 6, numRuns: 500 },
  );
});
