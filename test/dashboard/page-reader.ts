import { type IncomingMessage, type OutgoingHttpHeaders, request } from "node:http";
import type { BoardFrame, Frame } from "../../src/job/dashboard/frame.ts";

/** One server-sent event, decoded. */
export type Heard =
  | { readonly event: "frame"; readonly id: string; readonly data: Frame }
  | { readonly event: "board"; readonly id: ""; readonly data: BoardFrame };

/** Asks a dashboard for one thing. */
export function ask(
  url: string,
  path: string,
  options: { readonly method?: string; readonly headers?: OutgoingHttpHeaders } = {},
): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    request(new URL(path, url), { agent: false, ...options })
      .on("response", resolve)
      .on("error", reject)
      .end();
  });
}

/** The token in a dashboard's address, as a header. */
export function bearer(url: string): OutgoingHttpHeaders {
  return { authorization: `Bearer ${/#token=(.*)$/.exec(url)?.[1]}` };
}

/** Listens as a page does, and keeps what it heard. */
export class PageReader implements Disposable {
  readonly heard: Heard[] = [];
  readonly response: IncomingMessage;
  #texts: string[] = [];
  #wake: () => void = () => {};

  private constructor(response: IncomingMessage) {
    this.response = response;
    response.setEncoding("utf8").on("data", (text: string) => this.#read(text));
    // The server ends, or the test does.
    response.on("error", () => {});
    response.on("close", () => this.#wake());
  }

  static async open(url: string, headers: OutgoingHttpHeaders = {}): Promise<PageReader> {
    return new PageReader(await ask(url, "stream", { headers: { ...bearer(url), ...headers } }));
  }

  get frames(): readonly Frame[] {
    return this.heard.flatMap((one) => (one.event === "frame" ? [one.data] : []));
  }

  get lastId(): string {
    return this.heard.findLast(({ id }) => id !== "")?.id ?? "";
  }

  /** Waits until something that was heard fits, and gives it. */
  async until<T>(find: (reader: this) => T | undefined): Promise<T> {
    for (;;) {
      const found = find(this);
      if (found !== undefined) return found;
      if (this.response.closed) throw new Error("the stream ended before it was heard");
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
  }

  [Symbol.dispose](): void {
    this.response.destroy();
  }

  #read(text: string): void {
    this.#texts.push(text);
    // The end of a message may be torn.
    if (!this.#texts.slice(-2).join("").includes("\n\n")) return;
    const messages = this.#texts.join("").split("\n\n");
    this.#texts = [messages.pop() ?? ""];
    for (const message of messages) {
      const lines = message.split("\n");
      const field = (name: string) =>
        lines.find((line) => line.startsWith(`${name}: `))?.slice(name.length + 2) ?? "";
      if (field("data") === "") continue;
      this.heard.push({ event: field("event"), id: field("id"), data: JSON.parse(field("data")) } as Heard);
    }
    this.#wake();
  }
}
