import { randomUUID } from "node:crypto";
import type { ServerResponse } from "node:http";
import { eventText, SentEvents } from "../http.ts";
import type { BoardFrame, Frame } from "./frame.ts";

/** Produces the frames to send. */
export interface FrameSource {
  /** The changes since the last call; undefined if there are none. */
  takeChange(): Frame | undefined;
  /** Everything, for a page that has nothing yet. */
  complete(): Frame;
}

/** Shortest time between two frames: each write costs more than its content. */
const flushMs = 200;
/** Unread bytes above which a page is sent nothing until it has caught up. */
const maxUnreadBytes = 1 << 20;
const replayCharacters = 4 << 20;
const reconnectMs = 1000;

/**
 * Sends numbered frames to every page that listens. A page that reconnects with the number of its last frame gets those that it
 * missed, or everything if these are gone or the number is from an earlier server.
 */
export class Broadcast {
  readonly #source: FrameSource;
  readonly #epoch = randomUUID();
  readonly #replay = new Replay();
  /** Pages, and the number of the last frame sent to each. */
  readonly #listeners = new Map<SentEvents, number>();
  readonly #onGivenUp: () => void;
  #number = 0;
  #flush: NodeJS.Timeout | undefined;

  /** @param onGivenUp - called for each page that is disconnected because it read nothing for too long */
  constructor(source: FrameSource, onGivenUp: () => void) {
    this.#source = source;
    this.#onGivenUp = onGivenUp;
  }

  get numListeners(): number {
    return this.#listeners.size;
  }

  /**
   * Sends frames to a page until its connection ends. @param response - not started
   * @param lastEventId - number of the last frame that a reconnecting page received
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

  /** Schedules the next frame. Without listening pages, it is sent to the next one that connects. */
  wake(): void {
    if (this.#listeners.size > 0) this.#flush ??= setTimeout(() => this.#send(), flushMs).unref();
  }

  /** Sends pending changes, then the status board, which is not repeated to pages that missed it. */
  sendNow(board: BoardFrame): void {
    this.#send(eventText("board", board));
  }

  close(): void {
    this.#send();
    for (const listener of this.#listeners.keys()) listener.end();
  }

  /** Sends pending changes as a numbered frame, then `passing`, which is not kept. */
  #send(passing = ""): void {
    clearTimeout(this.#flush);
    this.#flush = undefined;
    const text = this.#nextFrame() + passing;
    if (text === "") return;
    for (const listener of this.#listeners.keys()) {
      if (listener.send(text)) this.#listeners.set(listener, this.#number);
    }
  }

  /** The changes since the last frame as a frame of their own; empty if there are none. */
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
      eventText("frame", this.#source.complete(), this.#id()),
    ];
    this.#listeners.set(listener, this.#number);
    if (missed.length > 0) listener.send(missed.join(""));
  }

  #id(): string {
    return `${this.#epoch}.${this.#number}`;
  }

  /** The frame number in an id; −1, before every frame, for an id of another server. */
  #numberOf(id: string | undefined): number {
    const [, epoch, digits] = /^([\w-]{1,64})\.(\d{1,15})$/.exec(id ?? "") ?? [];
    return epoch === this.#epoch ? Number(digits) : -1;
  }
}

/** Recent frames, in bounded memory, for pages that reconnect. */
class Replay {
  #texts: { readonly number: number; readonly text: string }[] = [];
  #numCharacters = 0;

  /** @param number - one more than that of the last text */
  push(number: number, text: string): void {
    this.#texts.push({ number, text });
    this.#numCharacters += text.length;
    let numGone = 0;
    while (this.#numCharacters > replayCharacters && numGone < this.#texts.length)
      this.#numCharacters -= this.#texts[numGone++]?.text.length ?? 0;
    if (numGone > 0) this.#texts = this.#texts.slice(numGone);
  }

  /** @returns the texts after `number`, up to `latest`; undefined if some of them are gone */
  since(number: number, latest: number): readonly string[] | undefined {
    if (number === latest) return [];
    if (number > latest || (this.#texts[0]?.number ?? Number.POSITIVE_INFINITY) > number + 1)
      return undefined;
    return this.#texts.filter((entry) => entry.number > number).map(({ text }) => text);
  }
}
