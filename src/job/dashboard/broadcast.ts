import { randomUUID } from "node:crypto";
import type { ServerResponse } from "node:http";
import { toJson } from "../events/index.ts";
import type { BoardFrame, Frame } from "./frame.ts";
import { Listener } from "./listener.ts";
import { Replay } from "./replay.ts";

/** Where frames come from. */
export interface FrameSource {
  /** What changed since the last call; undefined where nothing did. */
  takeChange(): Frame | undefined;
  /** All of it. */
  whole(): Frame;
}

/** Frames are sent at most this often, with the board where there is one: each write costs more than what is in it. */
const flushMs = 200;
const beatMs = 10_000;
const replayCharacters = 4 << 20;
const reconnectMs = 1000;

/**
 * Sends frames to every page that listens. Each has a number; a page that comes back with the number of the last one it
 * saw gets those that it missed, or where they are gone, or it comes from before this server's time, all of it.
 */
export class Broadcast {
  readonly #source: FrameSource;
  readonly #epoch = randomUUID();
  readonly #replay = new Replay(replayCharacters);
  /** Pages, and the last frame that each was sent. */
  readonly #listeners = new Map<Listener, number>();
  readonly #beat: NodeJS.Timeout;
  #number = 0;
  #flush: NodeJS.Timeout | undefined;

  /** @param onGivenUp - told of each page that has read nothing for so long that it was let go */
  constructor(source: FrameSource, onGivenUp: () => void = () => {}) {
    this.#source = source;
    this.#beat = setInterval(() => {
      for (const listener of this.#listeners.keys()) if (!listener.beat()) onGivenUp();
    }, beatMs).unref();
  }

  get numListeners(): number {
    return this.#listeners.size;
  }

  /**
   * Lets a page listen until its connection ends.
   * @param response - not yet begun
   * @param lastEventId - of the last frame that it saw, where it comes back
   * @param board - what there is to see now
   */
  join(response: ServerResponse, lastEventId: string | undefined, board: BoardFrame): void {
    response.writeHead(200, { "Content-Type": "text/event-stream", "X-Accel-Buffering": "no" });
    const listener = new Listener(response, () => this.#catchUp(listener));
    this.#send();
    this.#listeners.set(listener, this.#numberOf(lastEventId));
    response.on("close", () => this.#listeners.delete(listener));
    listener.send(`retry: ${reconnectMs}\n\n`);
    this.#catchUp(listener);
    listener.send(message("board", board));
  }

  /** Says that there is something new to tell. Where no page listens it is told to the next one that does. */
  wake(): void {
    if (this.#listeners.size > 0) this.#flush ??= setTimeout(() => this.#send(), flushMs).unref();
  }

  /** Sends what is of worth now only, behind what is new: it is not repeated to who missed it. */
  sendNow(board: BoardFrame): void {
    this.#send(message("board", board));
  }

  close(): void {
    clearInterval(this.#beat);
    this.#send();
    for (const listener of this.#listeners.keys()) listener.end();
  }

  /** Sends what is new, as a numbered frame, and what is of worth now only. */
  #send(passing = ""): void {
    clearTimeout(this.#flush);
    this.#flush = undefined;
    const text = this.#nextFrame() + passing;
    if (text === "") return;
    for (const listener of this.#listeners.keys()) {
      if (listener.send(text)) this.#listeners.set(listener, this.#number);
    }
  }

  /** What changed since the last one; nothing where nothing did. */
  #nextFrame(): string {
    const frame = this.#source.takeChange();
    if (frame === undefined) return "";
    this.#number++;
    const text = message("frame", frame, this.#id());
    this.#replay.push(this.#number, text);
    return text;
  }

  #catchUp(listener: Listener): void {
    const seen = this.#listeners.get(listener);
    if (seen === undefined) return;
    const missed = this.#replay.since(seen, this.#number) ?? [
      message("frame", this.#source.whole(), this.#id()),
    ];
    this.#listeners.set(listener, this.#number);
    if (missed.length > 0) listener.send(missed.join(""));
  }

  #id(): string {
    return `${this.#epoch}.${this.#number}`;
  }

  /** −1, which is before everything, for an id that is not of this server. */
  #numberOf(id: string | undefined): number {
    const [, epoch, digits] = /^([\w-]{1,64})\.(\d{1,15})$/.exec(id ?? "") ?? [];
    return epoch === this.#epoch ? Number(digits) : -1;
  }
}

/** One server-sent event. JSON has no line breaks, so that it is one line. */
function message(event: string, data: object, id?: string): string {
  return `${id === undefined ? "" : `id: ${id}\n`}event: ${event}\ndata: ${toJson(data)}\n\n`;
}
