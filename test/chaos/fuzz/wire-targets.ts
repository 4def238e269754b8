import { Unpackr } from "msgpackr/pack";
import { packControl } from "../../../src/runtime/hosting/packed-control.ts";
import { unpackNews, unpackOrder } from "../../../src/runtime/hosting/process-orders.ts";
import { CreditCounters, creditCountersBytes } from "../../../src/runtime/mailbox/credit-counters.ts";
import { blankRecord, RecordType } from "../../../src/runtime/protocol/record.ts";
import { CodecSet } from "../../../src/runtime/transport/codec.ts";
import { FrameReader, frameFlag, frameHeader } from "../../../src/runtime/transport/frame.ts";
import { IpcEncoding } from "../../../src/runtime/transport/ipc-codec.ts";
import type { Parcel } from "../../../src/runtime/transport/link.ts";
import { PackedLink } from "../../../src/runtime/transport/packed-link.ts";
import { checkPacket, type Packet, readPacket, singlePacket } from "../../../src/runtime/transport/packet.ts";
import type { Target } from "./target.ts";

const maxFrameBytes = 1 << 16;
const runOfTells = 1 << 11;
const controlRoute = 0;
const route = 7;

const statement: Packet = singlePacket({
  ...blankRecord,
  type: RecordType.tell,
  kind: "go",
  body: { $codec: "x" },
} as never);
const asked: Packet = singlePacket({
  ...blankRecord,
  type: RecordType.ask,
  id: 3,
  deadlineMs: 9e9,
  kind: "step",
  body: { step: 12, bytes: new Uint8Array(9), list: [1.5, "a", null, undefined, true, -1] },
} as never);
const news = [
  { kind: "ready", address: "door" },
  { kind: "exited", uid: 3, failure: { name: "Error", message: "gone", code: "X" } },
  { kind: "corrupted", index: 2, failure: { name: "Error", message: "no frame" } },
] as const;
const orders = [
  { kind: "terminate", uid: 4 },
  { kind: "lost", index: 2 },
  { kind: "leave" },
  { kind: "tellAfter", uid: 1, route: 7, packet: statement },
  { kind: "join", left: { uid: 1, peer: {} }, right: { uid: 2, peer: {} } },
] as never[];

/** A pipe without a process at its other end. */
class Parcels {
  readonly sent: Extract<Parcel, { bytes: unknown }>[] = [];
  #receive: (parcel: Parcel) => void = () => {};

  send(parcel: Parcel): void {
    if ("bytes" in parcel) this.sent.push(parcel);
  }

  listen(receive: (parcel: Parcel) => void): void {
    this.#receive = receive;
  }

  deliver(parcel: Parcel): void {
    this.#receive(parcel);
  }

  poll(): undefined {
    return undefined;
  }

  close(): void {}
}

/** The messages between processes. */
export const wireTargets: readonly Target[] = [
  {
    name: "frames of a socket",
    sources: /runtime\/transport\/frame/,
    corpus: [
      Buffer.concat([frameHeader(3, route, 0, 0), Uint8Array.of(1, 2, 3), frameHeader(0, route, 8, 1)]),
      frameHeader(0xffff_ffff, 1, 0, 0),
      frameHeader(1, 1, 8, 0),
      frameHeader(0, 0, 0xffff_ffff, 0),
    ],
    take(input) {
      const reader = new FrameReader(maxFrameBytes);
      for (const piece of inPieces(input)) {
        reader.read(piece, ({ bytes }) => {
          if (bytes.length > maxFrameBytes) throw new Error("a frame above the cap");
        });
      }
    },
    refusals: ["FRAME_INVALID"],
  },
  {
    name: "packed messages",
    sources: /runtime\/transport\/(packet|codec)/,
    corpus: [
      packControl({ kind: "ready", address: "door" }),
      // A run of two billion messages.
      packControl([runOfTells, "go", 2 ** 31, 0] as never),
      packControl(statement as never),
    ],
    take(input) {
      let packet: unknown;
      try {
        packet = new Unpackr({ sequential: true, moreTypes: true, useToJSON: false } as never).unpack(
          Buffer.from(input),
        );
      } catch {
        return; // the link ends the call: see `PackedLink`
      }
      readAll(checkPacket(packet));
    },
    refusals: ["FRAME_INVALID", "MESSAGE_UNSENDABLE"],
  },
  {
    name: "orders and news of processes",
    sources: /runtime\/hosting\/process-orders|msgpackr\/unpack/,
    corpus: [...orders, ...news, ["ready"], { kind: "exited", uid: -1 }, { kind: "start", boot: null }].map(
      (said) => packControl(said as never),
    ),
    take(input) {
      // Whatever the one refuses, the other is still to be asked.
      const refused = [unpackOrder, unpackNews].flatMap((unpack) => {
        try {
          unpack(input);
          return [];
        } catch (error) {
          return [error];
        }
      });
      const wrong = refused.find((error) => (error as { code?: string }).code !== "FRAME_INVALID");
      if (wrong !== undefined) throw wrong;
    },
    refusals: [],
  },
  {
    name: "a socket from end to end: frames, what is packed in them, records, bodies",
    sources: /runtime\/(transport|hosting\/process-orders)|msgpackr\/unpack/,
    corpus: [conversation(), conversation().subarray(0, 60), Buffer.concat([conversation(), conversation()])],
    take(input) {
      const reader = new FrameReader(maxFrameBytes);
      const pipe = new Parcels();
      const link = new PackedLink(emptyCounters(), pipe, nothingToEncode(), maxFrameBytes);
      let garbled = false;
      link.listen(readAll, () => {
        garbled = true;
      });
      for (const piece of inPieces(input)) {
        reader.read(piece, (frame) => {
          // A link that has said what cannot be is heard no more.
          if (garbled) return;
          if (frame.route === controlRoute) unpackNews(frame.bytes);
          else pipe.deliver(frame);
        });
      }
    },
    refusals: ["FRAME_INVALID", "MESSAGE_UNSENDABLE"],
  },
];

/** The frames from one process to another: news, then packets, of which the later ones name shapes that the first has defined. */
function conversation(): Buffer {
  const pipe = new Parcels();
  const link = new PackedLink(emptyCounters(), pipe, nothingToEncode(), maxFrameBytes);
  for (const packet of [statement, asked, asked]) link.post(packet, [], false);
  let numFrames = 0;
  const frame = (bytes: Uint8Array, to: number, flags: number) =>
    Buffer.concat([frameHeader(bytes.length, to, flags, numFrames++), bytes]);
  return Buffer.concat([
    ...news.map((said) => frame(packControl(said as never), controlRoute, 0)),
    ...pipe.sent.map(({ bytes, flags }) => frame(bytes, route, flags)),
    frame(new Uint8Array(), route, frameFlag.last),
  ]);
}

function readAll(packet: Packet): void {
  const codecs = new CodecSet([]);
  readPacket(packet, ({ body }) => void codecs.decode(body));
}

function emptyCounters(): CreditCounters {
  return new CreditCounters(new SharedArrayBuffer(creditCountersBytes), 0);
}

/** For packets in which nothing has to be encoded. */
function nothingToEncode(): IpcEncoding {
  return new IpcEncoding({ accepts: () => false, encode: (record) => record, decode: (data) => data });
}

/** In pieces, as sockets bring them. */
function inPieces(input: Uint8Array): readonly Uint8Array[] {
  const cut = (input[0] ?? 0) % 17;
  return [input.subarray(0, cut), input.subarray(cut)];
}
