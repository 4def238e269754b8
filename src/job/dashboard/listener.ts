import type { ServerResponse } from "node:http";

/** What a browser may leave unread before it is sent nothing more, until it has caught up. */
const maxUnreadBytes = 1 << 20;

/**
 * One page that listens. Sending never waits: to a page that reads too slowly nothing is sent until it has read what it
 * was sent, and then it is told anew where things stand.
 */
export class Listener {
  readonly #response: ServerResponse;
  #behind = false;
  #numBeatsBehind = 0;

  /** @param catchUp - is called when a page that was behind has read all; its frames were left out meanwhile */
  constructor(response: ServerResponse, catchUp: () => void) {
    this.#response = response;
    response.on("drain", () => {
      if (!this.#behind) return;
      this.#behind = false;
      this.#numBeatsBehind = 0;
      catchUp();
    });
  }

  /** @returns whether it was sent: not to a page that is behind */
  send(text: string): boolean {
    if (this.#behind) return false;
    // What has never left can be above the bound: only then is there a "drain" to wait for.
    if (!this.#response.write(text) && this.#response.writableLength > maxUnreadBytes) this.#behind = true;
    return true;
  }

  /**
   * Keeps the connection open through whatever lies between; gives up a page that has read nothing for three beats.
   * @returns whether the page is there still
   */
  beat(): boolean {
    const isGone = this.#behind && ++this.#numBeatsBehind === 3;
    if (isGone) this.#response.destroy();
    else this.send(": beat\n\n");
    return !isGone;
  }

  end(): void {
    if (this.#behind) this.#response.destroy();
    else this.#response.end();
  }
}
