import { once } from "node:events";
import { connect } from "node:net";
import { join } from "node:path";
import { CheckpointServer, CheckpointService } from "../../../src/tools/service/index.ts";
import type { Target } from "./target.ts";

const request = (head: string, headers: readonly string[] = [], content = ""): string =>
  `${[head, "Host: localhost", ...headers, ...(content === "" ? [] : [`Content-Length: ${content.length}`])].join("\r\n")}\r\n\r\n${content}`;

const floats = "Content-Type: application/octet-stream";
const json = "Content-Type: application/json";
const put = (path: string, facts: readonly string[], content: string): string =>
  request(`PUT ${path} HTTP/1.1`, [floats, ...facts], content);
const pair = ["Troupe-Dtype: F32", "Troupe-Shape: 2"];

/** Requests that are good, and what is known to be tried. */
const corpus: readonly string[] = [
  request("GET /checkpoints HTTP/1.1"),
  request("GET /checkpoints/1 HTTP/1.1"),
  request("GET /checkpoints/1/verify HTTP/1.1"),
  request("GET /checkpoints/1/tensors/a HTTP/1.1", ["Troupe-Offset: 0", "Troupe-Slice-Shape: 1"]),
  request("HEAD /checkpoints/1/tensors/a HTTP/1.1"),
  put("/checkpoints/2/tensors/a", pair, "01234567") + request("DELETE /checkpoints/2 HTTP/1.1"),
  put("/checkpoints/3/optimizer/exp_avg.a", [...pair, "Expect: 100-continue"], "01234567"),
  put(
    "/checkpoints/4/tensors/a",
    ["Troupe-Dtype: F32", "Troupe-Shape: 4", "Troupe-Offset: 2", "Troupe-Slice-Shape: 2"],
    "01234567",
  ),
  put(
    "/checkpoints/5/tensors/..%2f..%2fetc",
    ["Troupe-Dtype: F32", "Troupe-Shape: 4294967296,4294967296"],
    "01234567",
  ),
  put("/checkpoints/999999999999999/tensors/%00", ["Troupe-Dtype: I4", "Troupe-Shape: -1"], "x"),
  request(
    "POST /checkpoints/2/commit HTTP/1.1",
    [json],
    '{"metadata":{"loss":2},"config":{"model_type":"x"}}',
  ),
  request("POST /checkpoints/2/commit HTTP/1.1", [json], '{"metadata":{"__proto__":1},"config":[]}'),
  request("POST /checkpoints/2/commit HTTP/1.1", [json], '{"metadata":{},"metadata":{}}'),
  request("PUT /checkpoints/6/tensors/a HTTP/1.1", [floats, "Transfer-Encoding: chunked", ...pair]) +
    "3\r\nabc\r\n0\r\n\r\n",
  request("GET /events HTTP/1.1"),
  request("TRACE / HTTP/1.1"),
  request("GET /checkpoints/%E0%A4%A HTTP/1.1", ["Origin: http://evil.example"]),
  "GET /checkpoints HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
];

/** A refusal says whose fault it was; these say that it was neither side's: ask again later, or send less. */
const servedLater: readonly number[] = [503, 507];

/**
 * A checkpoint service behind its HTTP server, on a Unix socket: each input is what a client writes before it hangs up. Every
 * answer must be one that the protocol has, and the service must go on answering.
 */
export async function openServiceTarget(folder: string): Promise<Target & AsyncDisposable> {
  await using opening = new AsyncDisposableStack();
  const service = opening.use(
    await CheckpointService.open({ dir: join(folder, "run"), stagingBytes: 1 << 20 }),
  );
  await service.save({ step: 1, tensors: { a: Float32Array.of(1, 2) } }).durable;
  const path = join(folder, "socket");
  opening.use(await CheckpointServer.listen(service, { socket: path, idleMs: 1_000 }));
  const failed: Error[] = [];
  const hear = (warning: Error): void => void failed.push(warning);
  process.on("warning", hear);
  opening.defer(() => void process.off("warning", hear));
  const stack = opening.move();
  return {
    name: "requests to the checkpoint service",
    sources: /src\/(service|checkpoint\/(strict-json|json-cursor))/,
    corpus: corpus.map((words) => Buffer.from(words, "latin1")),
    async take(input) {
      const answer = await answerTo(path, input);
      for (const [, status] of answer.matchAll(/^HTTP\/1\.1 (\d{3})/gm)) {
        const code = Number(status);
        if (code >= 500 && !servedLater.includes(code))
          throw new Error(`answered ${code}: ${answer.slice(-200)} ${failed.at(-1)?.stack ?? ""}`);
      }
    },
    refusals: [],
    [Symbol.asyncDispose]: () => stack.disposeAsync(),
  };
}

/** Writes all of the bytes, and reads until the end. */
async function answerTo(path: string, input: Uint8Array): Promise<string> {
  const socket = connect(path);
  let answer = "";
  socket.setEncoding("latin1").on("data", (part: string) => {
    answer += part;
    // Events go on for ever.
    if (answer.includes("text/event-stream")) socket.destroy();
  });
  socket.on("error", () => {});
  socket.end(input);
  await once(socket, "close");
  return answer;
}
