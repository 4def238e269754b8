import { randomUUID } from "node:crypto";
import type { ServerResponse } from "node:http";
import { eventText, SentEvents } from "../http.ts";
import type { BoardFrame, Frame } from "./frame.ts";

/** Where frames come from. */
export interface FrameSource {
  /** What changed since the last call; undefined where nothing did. */
  takeChange(): Frame | undefined;
  /** All of it. */
  whole(): Frame;
}

/** Frames are sent at most this often, with the board where there is one: each write costs more than what is in it. */
const flushMs = 200;
/** What a browser may leave unread before it is sent nothing more, until it has caught up. */
const maxUnreadBytes = 1 << 20;
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
  readonly #listeners = new Map<SentEvents, number>();
  readonly #onGivenUp: () => void;
  #number = 0;
  #flush: NodeJS.Timeout | undefined;

  /** @param onGivenUp - told of each page that has read nothing for so long that it was let go */
  constructor(source: FrameSource, onGivenUp: () => void = () => {}) {
    this.#source = source;
    this.#onGivenUp = onGivenUp;
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
    const onCaughtUp = () => this.#catchUp(listener);
    const listener = new SentEvents(response, { maxUnreadBytes, onCaughtUp, onGivenUp: this.#onGivenUp });
    this.#send();
    this.#listeners.set(listener, this.#numberOf(lastEventId));
    response.on("close", () => this.#listeners.delete(listener));
    listener.send(`retry: ${reconnectMs}\n\n`);
    this.#catchUp(listener);
    listener.send(eventText("board", board));
  }

  /** Says that there is something new to tell. Where no page listens it is told to the next one that does. */
  wake(): void {
    if (this.#listeners.size > 0) this.#flush ??= setTimeout(() => this.#send(), flushMs).unref();
  }

  /** Sends what is of worth now only, behind what is new: it is not repeated to who missed it. */
  sendNow(board: BoardFrame): void {
    this.#send(eventText("board", board));
  }

  close(): void {
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
    const text = eventText("frame", frame, this.#id());
    this.#replay.push(this.#number, text);
    return text;
  }

  #catchUp(listener: SentEvents): void {
    const seen = this.#listeners.get(listener);
    if (seen === undefined) return;
    const missed = this.#replay.since(seen, this.#number) ?? [
      eventText("frame", this.#source.whole(), this.#id()),
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

/** What was sent last, in bounded memory, for pages that come back. */
class Replay {
  readonly #maxCharacters: number;
  #texts: { readonly number: number; readonly text: string }[] = [];
  #numCharacters = 0;

  constructor(maxCharacters: number) {
    this.#maxCharacters = maxCharacters;
  }

  /** @param number - rises by one with each text */
  push(number: number, text: string): void {
    this.#texts.push({ number, text });
    this.#numCharacters += text.length;
    let numGone = 0;
    while (this.#numCharacters > this.#maxCharacters && numGone < this.#texts.length) {
      this.#numCharacters -= this.#texts[numGone++]?.text.length ?? 0;
    }
    if (numGone > 0) this.#texts = this.#texts.slice(numGone);
  }

  /** @returns what came after text `number`, up to `latest`; undefined where some of it is gone */
  since(number: number, latest: number): readonly string[] | undefined {
    if (number === latest) return [];
    if (number > latest || (this.#texts[0]?.number ?? Number.POSITIVE_INFINITY) > number + 1)
      return undefined;
    return this.#texts.filter((entry) => entry.number > number).map(({ text }) => text);
  }
}
