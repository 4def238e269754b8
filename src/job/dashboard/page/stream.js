/** @import { BoardFrame, Frame } from "../frame.ts" */

/**
 * Receives the server's messages.
 * @typedef {object} Hearer
 * @property {(frame: Frame) => void} frame
 * @property {(board: BoardFrame) => void} board
 * @property {(link: "connected" | "lost" | "refused") => void} link
 */

const firstPauseMs = 500;
const maxPauseMs = 5000;
/** The server sends something every ten seconds. */
const silenceMs = 25_000;

/**
 * Listens to the server's events, and reconnects from the last one when the connection ends. `EventSource` cannot send the token in
 * a header.
 * @param {string} token
 * @param {Hearer} hearer
 * @returns {Promise<void>} ends only when the token is refused
 */
export async function listen(token, hearer) {
  let lastId = "";
  let pauseMs = firstPauseMs;
  for (;;) {
    const silence = new Silence();
    try {
      const headers = {
        Authorization: `Bearer ${token}`,
        ...(lastId === "" ? {} : { "Last-Event-ID": lastId }),
      };
      const response = await fetch("stream", { headers, cache: "no-store", signal: silence.signal });
      if (response.status === 401) return hearer.link("refused");
      if (!response.ok || response.body === null) throw new Error(`status ${response.status}`);
      hearer.link("connected");
      pauseMs = firstPauseMs;
      for await (const { id, event, data } of messages(response.body, silence)) {
        if (event === "frame") hearer.frame(decode(data));
        if (event === "board") hearer.board(decode(data));
        if (id !== "") lastId = id;
      }
    } catch {
      // Reconnect after any failure.
    }
    silence.end();
    hearer.link("lost");
    await new Promise((resolve) => setTimeout(resolve, pauseMs));
    pauseMs = Math.min(2 * pauseMs, maxPauseMs);
  }
}

/** Ends a silent connection. */
class Silence {
  #abort = new AbortController();
  #timer = setTimeout(() => this.#abort.abort(), silenceMs);

  get signal() {
    return this.#abort.signal;
  }

  broken() {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#abort.abort(), silenceMs);
  }

  end() {
    clearTimeout(this.#timer);
    this.#abort.abort();
  }
}

/**
 * Yields the messages of a stream of server-sent events as this server writes them: each field on one line.
 * @param {ReadableStream<Uint8Array<ArrayBuffer>>} body
 * @param {Silence} silence
 */
async function* messages(body, silence) {
  let message = { id: "", event: "", data: "" };
  for await (const line of lines(body, silence)) {
    if (line === "") {
      if (message.data !== "") yield message;
      message = { id: "", event: "", data: "" };
    } else if (line.startsWith("id: ")) message.id = line.slice(4);
    else if (line.startsWith("event: ")) message.event = line.slice(7);
    else if (line.startsWith("data: ")) message.data = line.slice(6);
  }
}

/**
 * @param {ReadableStream<Uint8Array<ArrayBuffer>>} body
 * @param {Silence} silence
 */
async function* lines(body, silence) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  /** @type {string[]} */
  let begun = [];
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    silence.broken();
    const [head = "", ...rest] = value.split("\n");
    begun.push(head);
    for (const part of rest) {
      yield begun.join("");
      begun = [part];
    }
  }
}

const notFinite = new Set(["NaN", "Infinity", "-Infinity"]);

/** @param {string} data */
function decode(data) {
  return JSON.parse(data, (_, value) => (notFinite.has(value) ? Number(value) : value));
}
