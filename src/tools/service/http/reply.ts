import type { ServerResponse } from "node:http";
import { type ErrorCode, TroupeError } from "../../../errors/index.ts";

/** What of a request is answered instead of what was asked for. */
export class Refused extends Error {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;

  constructor(status: number, message: string, headers: Readonly<Record<string, string>> = {}) {
    super(message);
    this.name = "Refused";
    this.status = status;
    this.headers = headers;
  }
}

/** Nothing that is answered is to be kept, guessed at or framed by a browser. */
const guardingHeaders = {
  "cache-control": "no-store",
  "content-security-policy": "default-src 'none'",
  "x-content-type-options": "nosniff",
  "x-frame-options": "DENY",
} as const;

/** Answers with one JSON object. */
export function replyJson(response: ServerResponse, status: number, body: object): void {
  const text = Buffer.from(`${JSON.stringify(body)}\n`);
  begin(response, status, { "content-type": "application/json", "content-length": String(text.length) });
  response.end(text);
}

/** Begins an answer whose content follows. */
export function begin(
  response: ServerResponse,
  status: number,
  headers: Readonly<Record<string, string>>,
): void {
  response.writeHead(status, { ...guardingHeaders, ...headers });
}

/** Resolves when more of an answer can be written, also when nobody will read it. */
export function drained(response: ServerResponse): Promise<void> {
  return new Promise((resolve) => {
    const done = () => {
      response.off("drain", done).off("close", done);
      resolve();
    };
    response.once("drain", done).once("close", done);
  });
}

const statusOf: Partial<Record<ErrorCode, number>> = {
  CHECKPOINT_DAMAGED: 422,
  CHECKPOINT_INCOMPLETE: 409,
  CHECKPOINT_MISSING: 404,
  CHECKPOINT_SAVE_FAILED: 500,
  CHECKPOINT_SLICE: 400,
  CHECKPOINT_STAGING: 507,
  JSON_INVALID: 400,
  CHECKPOINT_TENSOR: 404,
  USAGE: 400,
};

/**
 * Answers with what went wrong: `{ code, message }`. Where the request's content was not read, the connection ends with
 * the answer, so that nobody sends gigabytes for nothing.
 */
export function replyError(response: ServerResponse, error: unknown, contentRead: boolean): void {
  if (response.headersSent || response.socket?.destroyed !== false) {
    response.destroy();
    return;
  }
  if (!contentRead) response.shouldKeepAlive = false;
  if (error instanceof Refused) {
    for (const [name, value] of Object.entries(error.headers)) response.setHeader(name, value);
    replyJson(response, error.status, { code: "REQUEST_REFUSED", message: error.message });
  } else if (error instanceof TroupeError) {
    replyJson(response, statusOf[error.code] ?? 500, { code: error.code, message: error.message });
  } else {
    replyJson(response, 500, { code: "INTERNAL", message: "the service failed; its own output says how" });
    process.emitWarning(error instanceof Error ? error : String(error));
  }
}
