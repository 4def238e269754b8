import { execFile, execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { crc32, gunzipSync } from "node:zlib";
import { afterAll, describe, expect, it, onTestFinished } from "vitest";
import { wandbSink } from "../../src/tools/sinks/index.ts";
import { samples, stamped } from "../events/samples.ts";

const scratch = mkdtempSync(join(tmpdir(), "troupe-wandb-"));
afterAll(() => rmSync(scratch, { recursive: true }));

const began = 1_700_000_000_000;

/** Tracks a run of `numSteps` steps. @returns the file of the run */
async function track(name: string, { firstStep = 0, numSteps = 3, goesBack = false } = {}): Promise<string> {
  const folder = join(scratch, name);
  const checkpoint = join(folder, "step-000003");
  mkdirSync(checkpoint, { recursive: true });
  writeFileSync(join(checkpoint, "model.safetensors"), "weights");
  const dir = join(folder, "wandb");
  const environment = { WANDB_PROJECT: "sorting", WANDB_ENTITY: "me", WANDB_API_KEY: "secret" };
  const sink = wandbSink({ dir, folder, environment });
  sink.write({ ...stamped("run.started", { firstStep }), timeMs: began + 1000 * firstStep });
  const step = (number: number) => {
    const timeMs = began + 1000 * number;
    sink.write({ ...stamped("step.finished", { step: number, lossNats: 4 / number }), timeMs });
    sink.write({
      ...stamped("evaluation.finished", { step: number, lossNats: Number.NaN, split: "dev" }),
      timeMs,
    });
  };
  for (let number = firstStep + 1; number <= firstStep + numSteps; number++) step(number);
  if (goesBack) for (let number = 2; number <= firstStep + numSteps + 1; number++) step(number);
  const ended = began + 1000 * (firstStep + numSteps);
  sink.write({ ...stamped("checkpoint.saved", { step: 3, path: checkpoint }), timeMs: ended });
  sink.write({ ...stamped("run.finished", { steps: 3 }), timeMs: began + 9e6 });
  await sink.close();
  const [latest = ""] = readdirSync(dir).toSorted().reverse();
  const [file = ""] = readdirSync(join(dir, latest)).filter((each) => each.endsWith(".wandb"));
  return join(dir, latest, file);
}

/** The records of a file, with checksums and the edges of blocks checked. */
function recordsOf(path: string): Buffer[] {
  const bytes = readFileSync(path);
  expect(bytes.subarray(0, 7)).toEqual(Buffer.from([0x3a, 0x57, 0x26, 0x42, 0xe1, 0xbe, 0]));
  const records: Buffer[] = [];
  let begun: Buffer[] = [];
  for (let at = 7; at < bytes.length; ) {
    const left = 32_768 - (at % 32_768);
    if (left < 7) {
      expect(bytes.subarray(at, at + left).every((byte) => byte === 0)).toBe(true);
      at += left;
      continue;
    }
    const [sum, length, kind] = [bytes.readUInt32LE(at), bytes.readUInt16LE(at + 4), bytes.readUInt8(at + 6)];
    expect(7 + length).toBeLessThanOrEqual(left);
    const piece = bytes.subarray(at + 7, at + 7 + length);
    expect(crc32(Buffer.concat([Buffer.of(kind), piece]))).toBe(sum);
    begun.push(piece);
    if (kind === 1 || kind === 4) {
      records.push(Buffer.concat(begun));
      begun = [];
    }
    at += 7 + length;
  }
  expect(begun).toEqual([]);
  return records;
}

/** Fields of a message: bytes of those with a length, numbers of others. */
function fieldsOf(bytes: Buffer): Map<number, (Buffer | number)[]> {
  const fields = new Map<number, (Buffer | number)[]>();
  let at = 0;
  const varint = () => {
    let [value, factor] = [0, 1];
    for (;;) {
      const byte = bytes[at++] as number;
      value += (byte & 0x7f) * factor;
      if (byte < 0x80) return value;
      factor *= 128;
    }
  };
  while (at < bytes.length) {
    const key = varint();
    const value = varint();
    const field = Math.floor(key / 8);
    const isLong = key % 8 === 2;
    fields.set(field, [...(fields.get(field) ?? []), isLong ? bytes.subarray(at, at + value) : value]);
    if (isLong) at += value;
  }
  return fields;
}

/** The records of one kind. */
const ofKind = (path: string, field: number) =>
  recordsOf(path).flatMap((record) => (fieldsOf(record).get(field) ?? []) as Buffer[]);

/** Names and values of a record's items. */
const itemsOf = (record: Buffer, field = 1) =>
  Object.fromEntries(
    ((fieldsOf(record).get(field) ?? []) as Buffer[]).map((item) => {
      const fields = fieldsOf(item);
      return [`${fields.get(1)}`, JSON.parse(`${fields.get(16)}`)];
    }),
  );

const history = (path: string) => ofKind(path, 2).map((record) => itemsOf(record));

describe("the Weights & Biases sink", () => {
  it("writes a run's configuration, figures, the machine's, its checkpoint and end as records", async () => {
    const path = await track("a");
    const numbers = recordsOf(path).map((record) => fieldsOf(record).get(1)?.[0]);
    expect(numbers).toEqual(numbers.map((_, index) => index));
    const run = fieldsOf(ofKind(path, 17)[0] as Buffer);
    expect(`${run.get(2)} ${run.get(3)} ${run.get(8)}`).toBe("me sorting a");
    expect(itemsOf(run.get(4)?.[0] as Buffer)).toMatchObject({ numRanks: samples["run.started"].numRanks });
    expect(
      history(path).map((line) => [line._step, line["loss/train"], line["loss/dev"], line._runtime]),
    ).toEqual([
      [1, 4, "NaN", 1],
      [2, 2, "NaN", 2],
      [3, 4 / 3, "NaN", 3],
    ]);
    expect(itemsOf(ofKind(path, 3).at(-1) as Buffer)).toMatchObject({ _step: 3, "loss/train": 4 / 3 });
    expect(itemsOf(ofKind(path, 7)[0] as Buffer, 3)).toHaveProperty("proc.memory.rssMB");
    expect(`${fieldsOf(ofKind(path, 8)[0] as Buffer).get(11)}`).toBe("latest,step-3");
    expect(fieldsOf(ofKind(path, 18)[0] as Buffer).get(1)).toEqual([0]);
    expect(readFileSync(path).includes("secret")).toBe(false);
  });

  it("has each step once, though a run goes back, and fills its blocks to their edges", async () => {
    const path = await track("b", { numSteps: 400, goesBack: true });
    // The checkpoint of step 3 is saved in the last step, and lines rise.
    const { sizeBytes } = samples["checkpoint.saved"];
    expect(history(path).at(-1)).toMatchObject({ "loss/train": 4 / 401, "checkpoint/size_bytes": sizeBytes });
    expect(history(path).map((line) => line._step)).toEqual(
      Array.from({ length: 401 }, (_, index) => index + 1),
    );
  });

  it("goes on in the run of its folder when the training is resumed", async () => {
    const first = await track("c");
    const second = await track("c", { firstStep: 3 });
    expect(second).not.toBe(first);
    const runs = [first, second].map((path) => fieldsOf(ofKind(path, 17)[0] as Buffer));
    expect(`${runs[1]?.get(1)}`).toBe(`${runs[0]?.get(1)}`);
    expect([runs[0]?.get(24), runs[1]?.get(24), runs[1]?.get(14)]).toEqual([undefined, [1], [3]]);
    expect(history(second).map((line) => line._step)).toEqual([4, 5, 6]);
  });

  const python = process.env.TROUPE_PYTHON;
  const hasClient = (() => {
    try {
      if (python !== undefined) execFileSync(python, ["-c", "import wandb"], { stdio: "ignore" });
      return python !== undefined;
    } catch {
      return false;
    }
  })();
  if (!hasClient)
    console.warn("test/sinks/wandb.test.ts: wandb sync is not tried (TROUPE_PYTHON without wandb)");

  it.skipIf(!hasClient)(
    "is read and sent by wandb sync, every figure once",
    async () => {
      const path = await track("d", { numSteps: 300 });
      const sent: { operation: string; body: Record<string, unknown> }[] = [];
      const run = {
        id: "1",
        name: "d",
        displayName: "d",
        config: "{}",
        summaryMetrics: "{}",
        historyLineCount: 0,
      };
      const project = { id: "2", name: "sorting", entity: { id: "3", name: "me" } };
      const answers: Readonly<Record<string, object>> = {
        ServerFeaturesQuery: { serverInfo: { features: [] } },
        UpsertBucket: { upsertBucket: { bucket: { ...run, project }, inserted: true } },
        CreateArtifact: {
          createArtifact: {
            artifact: { id: "4", state: "COMMITTED", artifactSequence: { latestArtifact: null } },
          },
        },
      };
      const answer = async (request: IncomingMessage, response: ServerResponse) => {
        const chunks: Buffer[] = [];
        for await (const chunk of request) chunks.push(chunk);
        const bytes = Buffer.concat(chunks);
        const text = `${request.headers["content-encoding"] === "gzip" ? gunzipSync(bytes) : bytes}`;
        const body = /^\{/.test(text) ? JSON.parse(text) : {};
        sent.push({ operation: body.operationName ?? request.url, body });
        response.setHeader("content-type", "application/json");
        const files = (body.variables?.files ?? []) as readonly string[];
        const uploads = files.map((name) => ({
          name,
          uploadUrl: `http://${request.headers.host}/upload/${name}`,
        }));
        const made = {
          ...answers,
          CreateRunFiles: { createRunFiles: { runID: "1", uploadHeaders: [], files: uploads } },
        };
        const data = (made as Readonly<Record<string, object>>)[body.operationName];
        response.end(JSON.stringify(data === undefined ? {} : { data }));
      };
      const server = createServer((request, response) => void answer(request, response));
      await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
      onTestFinished(() => {
        server.closeAllConnections();
        server.close();
      });
      const { port } = server.address() as AddressInfo;
      const env = {
        ...process.env,
        WANDB_BASE_URL: `http://127.0.0.1:${port}`,
        WANDB_API_KEY: "a".repeat(40),
      };
      await promisify(execFile)(python as string, ["-m", "wandb", "sync", "--yes", path], {
        cwd: scratch,
        env,
      });
      const lines = sent.flatMap(({ body }) => {
        const files = (body.files ?? {}) as Record<string, { content?: readonly string[] }>;
        return (files["wandb-history.jsonl"]?.content ?? []).map((line) => JSON.parse(line));
      });
      expect(lines.map((line) => [line._step, line["loss/train"]])).toEqual(
        Array.from({ length: 300 }, (_, index) => [index + 1, 4 / (index + 1)]),
      );
      expect(sent.some(({ body }) => JSON.stringify(body).includes("system.proc.memory.rssMB"))).toBe(true);
      const variables = sent
        .filter(({ operation }) => operation === "UpsertBucket")
        .map(({ body }) => `${JSON.stringify(body)}`);
      expect(variables.join("")).toContain("numRanks");
      expect(sent.some(({ operation }) => operation === "CreateArtifact")).toBe(true);
      expect(sent.some(({ body }) => body.complete === true && body.exitcode === 0)).toBe(true);
    },
    120_000,
  );
});
