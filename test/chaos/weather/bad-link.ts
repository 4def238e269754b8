// Loaded first into every thread: a frame that one process sends to another is lost, or sent twice, once in a run.
import { writeFileSync } from "node:fs";
import { Socket } from "node:net";
import { basename } from "node:path";
import { isMainThread } from "node:worker_threads";
import { type ProcessStart, startVariable } from "../../../src/runtime/hosting/process-orders.ts";
import { frameHeaderBytes } from "../../../src/runtime/transport/frame.ts";

/** Which frame, and what becomes of it. Plain data. */
export interface BadLink {
  /** Processes by their index: 0 is the program's. */
  readonly from: number;
  readonly to: number;
  /** The so-manieth between them. */
  readonly frame: number;
  readonly times: 0 | 2;
  /** The file that says it has happened. */
  readonly doneFile: string;
}

/** The variable of the environment that holds a run's {@link BadLink}, as JSON. */
export const badLinkVariable = "TROUPE_BAD_LINK";

/** The bytes written into a socket that a hub has opened: headers, and the bytes that they announce. */
interface Course {
  numFrames: number;
  /** The bytes of the present frame that were written so far; none between frames. */
  readonly pieces: Uint8Array[];
}

const bad = JSON.parse(process.env[badLinkVariable] ?? "null") as BadLink | null;
const index = (JSON.parse(process.env[startVariable] ?? '{"index":0}') as ProcessStart).index;
if (isMainThread && bad?.from === index) spoil(bad);

function spoil({ to, frame, times, doneFile }: BadLink): void {
  const courses = new WeakMap<Socket, Course>();
  const connect = Socket.prototype.connect as (...args: unknown[]) => Socket;
  const write = Socket.prototype.write as (...args: unknown[]) => boolean;
  Socket.prototype.connect = function connecting(this: Socket, ...args: unknown[]): Socket {
    if (pathIn(args) === `p${to}.sock`) courses.set(this, { numFrames: 0, pieces: [] });
    return connect.apply(this, args);
  };
  Socket.prototype.write = function writing(this: Socket, ...args: unknown[]): boolean {
    const sampler = courses.get(this);
    if (sampler === undefined) return write.apply(this, args);
    sampler.pieces.push(args[0] as Uint8Array);
    if (!isWhole(sampler.pieces)) return true;
    const pieces = sampler.pieces.splice(0);
    sampler.numFrames += 1;
    if (sampler.numFrames === frame) writeFileSync(doneFile, "", { flag: "wx" });
    for (let time = 0; time < (sampler.numFrames === frame ? times : 1); time++)
      for (const piece of pieces) write.call(this, piece);
    return true;
  };
}

function isWhole([header, ...bytes]: readonly Uint8Array[]): boolean {
  if (header?.length !== frameHeaderBytes) throw new Error("expected the header of a frame first");
  const [sizeBytes] = new Uint32Array(header.slice().buffer);
  return bytes.reduce((sum, { length }) => sum + length, 0) === sizeBytes;
}

/** The name of the Unix socket that a call is for, however `connect` was given it. */
function pathIn(args: readonly unknown[]): string {
  const [first] = args.flat() as { readonly path?: string }[];
  return basename(first?.path ?? "");
}
