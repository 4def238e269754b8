import type { ServerResponse } from "node:http";
import { type ErrorCode, TroupeError } from "../../../errors/index.ts";
import { failure, Refused } from "../../../job/http.ts";

/** Answers with one JSON object. */
export function replyJson(response: ServerResponse, status: number, body: object): void {
  const text = Buffer.from(`${JSON.stringify(body)}\n`);
  const headers = { "content-type": "application/json", "content-length": String(text.length) };
  response.writeHead(status, headers).end(text);
}

const statusOf: Partial<Record<ErrorCode, number>> = {
  CHECKPOINT_DAMAGED: 422,
  GENERATE_OPTION: 400,
  LIVE_CALL: 400,
  MODEL_CLOSED: 410,
  MODEL_WEIGHTS: 422,
  OPTION: 400,
  RESUME_MISMATCH: 422,
  TENSOR_ARGUMENT: 400,
  CHECKPOINT_INCOMPLETE: 409,
  CHECKPOINT_MISSING: 404,
  CHECKPOINT_SAVE_FAILED: 500,
  CHECKPOINT_SLICE: 400,
  CHECKPOINT_STAGING: 507,
  JSON_INVALID: 400,
  CHECKPOINT_TENSOR: 404,
  USAGE: 400,
};

/** Answers `{ code, message }`; closes a connection whose content was not read, lest clients send gigabytes in vain. */
export function replyError(response: ServerResponse, error: unknown, contentRead: boolean): void {
  if (response.headersSent || response.socket?.destroyed !== false) {
    response.destroy();
    return;
  }
  if (!contentRead) response.shouldKeepAlive = false;
  if (error instanceof TroupeError) {
    replyJson(response, statusOf[error.code] ?? 500, { code: error.code, message: error.message });
    return;
  }
  const [code, refused] =
    error instanceof Refused ? ["REQUEST_REFUSED", error] : ["INTERNAL", failure(error)];
  for (const [name, value] of Object.entries(refused.headers)) response.setHeader(name, value);
  replyJson(response, refused.status, { code, message: refused.message });
}
