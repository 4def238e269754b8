import { chmodSync, mkdirSync, rmSync, writeFileSync } from "node:fs";
import type { IncomingMessage } from "node:http";
import { join } from "node:path";
import { Gate } from "../../../src/runtime/access/gate.ts";
import { keepToken } from "../../../src/runtime/access/token.ts";
import type { Target } from "./target.ts";

const token = "0123456789abcdef".repeat(4);
const text = (value: string): Uint8Array => new TextEncoder().encode(value);

/**
 * The targets that decide about callers at a port, and their tokens.
 * @param folder - for the files of tokens
 */
export function accessTargets(folder: string): readonly Target[] {
  return [gateTarget, tokenFileTarget(folder)];
}

const gateTarget: Target = {
  name: "who may come in: method, Host, Origin, token",
  sources: /access\/(gate|token)/,
  corpus: [
    `GET\nhost: 127.0.0.1:80\nauthorization: Bearer ${token}`,
    `GET\nhost: localhost\norigin: http://localhost\nauthorization: bearer ${token}`,
    `POST\nhost: [::1]:8080\norigin: http://evil.example\nauthorization: Bearer ${token}x`,
    `GET\nhost: evil.example\nhost: localhost\nauthorization: Bearer  ${token}`,
    `GET\nhost: localhost:1:2\norigin: null\nauthorization: Basic ${token}`,
  ].map(text),
  take(input) {
    const request = requestOf(new TextDecoder().decode(input));
    const gate = new Gate({ host: "127.0.0.1", token });
    if (gate.refuse(request) !== undefined || gate.refuseUnauthenticated(request) !== undefined) return;
    const { method, headers } = request;
    const isOurs =
      ["GET", "HEAD"].includes(method ?? "") &&
      /^(localhost|127\.0\.0\.1|\[::1\])(:\d{1,5})?$/i.test(headers.host ?? "") &&
      (headers.origin === undefined ||
        /^https?:\/\/(localhost|127\.0\.0\.1|\[::1\])(:\d{1,5})?$/i.test(headers.origin)) &&
      headers.authorization?.slice(-token.length) === token;
    if (!isOurs) throw new Error(`let in: ${JSON.stringify({ method, headers })}`);
  },
  refusals: [],
};

/** Headers as Node's server gives them: the first of a duplicate counts, and all are kept beside it. */
function requestOf(words: string): IncomingMessage {
  const [method, ...lines] = words.split("\n");
  const headersDistinct: Record<string, string[]> = Object.create(null);
  for (const line of lines) {
    const colon = line.indexOf(":");
    if (colon < 1) continue;
    const name = line.slice(0, colon).toLowerCase();
    headersDistinct[name] = [...(headersDistinct[name] ?? []), line.slice(colon + 1).trim()];
  }
  const headers = Object.fromEntries(Object.entries(headersDistinct).map(([name, [first]]) => [name, first]));
  return { method, headers, headersDistinct } as unknown as IncomingMessage;
}

function tokenFileTarget(folder: string): Target {
  mkdirSync(folder, { recursive: true });
  const path = join(folder, "token");
  return {
    name: "files of tokens",
    sources: /access\/token/,
    corpus: [
      `${token}\n`,
      `  ${token}`,
      token.toUpperCase(),
      token.slice(1),
      `${token}\n${token}\n`,
      "",
      `${token}\0`,
      "x".repeat(101),
    ].map(text),
    async take(input) {
      rmSync(path, { force: true });
      writeFileSync(path, input);
      chmodSync(path, 0o600);
      const kept = await keepToken(path);
      if (!/^[0-9a-f]{64}$/.test(kept) || new TextDecoder().decode(input).trim() !== kept)
        throw new Error(`a token that is not what the file says: ${kept}`);
    },
    refusals: ["ACCESS_TOKEN"],
  };
}
