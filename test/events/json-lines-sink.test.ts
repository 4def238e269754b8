import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, open, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Writable } from "node:stream";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { jsonLinesSink, toJson } from "../../src/job/events/sinks/json-lines-sink.ts";
import { samples, stamped } from "./samples.ts";

describe("a line of JSON", () => {
  test("gives every double back, bit for bit", () => {
    fc.assert(
      fc.property(fc.double({ noNaN: true, noDefaultInfinity: true }), (lossNats) => {
        const read = JSON.parse(toJson(stamped("step.finished", { lossNats })));
        // JSON.stringify writes -0 as 0; a loss has no sign of zero.
        expect(read.lossNats).toBe(lossNats === 0 ? 0 : lossNats);
      }),
    );
  });

  test("a loss has all 17 digits if it needs them, and is a string if it is NaN or infinite", () => {
    expect(toJson(stamped("step.finished", { lossNats: 0.1 + 0.2 }))).toContain(
      '"lossNats":0.30000000000000004,',
    );
    expect(toJson(stamped("run.finished", { lossNats: Number.NaN }))).toContain('"lossNats":"NaN"');
    expect(toJson(stamped("run.finished", { lossNats: -Infinity }))).toContain('"lossNats":"-Infinity"');
  });

  test("begins with the kind", () => {
    expect(toJson(stamped("checkpoint.started"))).toBe(
      '{"kind":"checkpoint.started","step":500,"stagedBytes":9600000,"waitedMs":0,"timeMs":1700000000000,"schemaVersion":2}',
    );
  });
});

describe("the sink", () => {
  test("writes one line for each event to a stream", async () => {
    const chunks: string[] = [];
    const stream = new Writable({
      write(chunk: Buffer, _, done) {
        chunks.push(chunk.toString());
        setImmediate(done);
      },
    });
    const sink = jsonLinesSink(stream);
    for (const kind of ["run.started", "step.finished", "run.finished"] as const) sink.write(stamped(kind));
    await sink.close();
    const lines = chunks.join("").split("\n");
    expect(lines.pop()).toBe("");
    expect(lines.map((line) => JSON.parse(line).kind)).toEqual([
      "run.started",
      "step.finished",
      "run.finished",
    ]);
  });

  test("writes to a file descriptor", async () => {
    const folder = await mkdtemp(join(tmpdir(), "troupe-events-"));
    const file = await open(join(folder, "events.jsonl"), "w");
    const sink = jsonLinesSink(file.fd);
    for (let step = 1; step <= 1000; step++) sink.write(stamped("step.finished", { step }));
    await sink.close();
    await file.close();
    const lines = (await readFile(join(folder, "events.jsonl"), "utf8")).trim().split("\n");
    expect(lines.map((line) => JSON.parse(line).step)).toEqual(
      Array.from({ length: 1000 }, (_, index) => index + 1),
    );
    await rm(folder, { recursive: true });
  });

  test("the sink writes lines together that come within its interval", async () => {
    const chunks: string[] = [];
    const stream = new Writable({
      write(chunk: Buffer, _, done) {
        chunks.push(chunk.toString());
        done();
      },
    });
    const sink = jsonLinesSink(stream, { everyMs: 60_000 });
    for (const kind of ["run.started", "step.finished", "run.finished"] as const) sink.write(stamped(kind));
    expect(chunks).toEqual([]);
    await sink.close();
    expect(chunks).toHaveLength(1);
    expect(chunks[0]?.trim().split("\n")).toHaveLength(3);
  });

  test("leaves a valid file if the process ends early, and closes nothing", async () => {
    const folder = await mkdtemp(join(tmpdir(), "troupe-events-"));
    const path = join(folder, "events.jsonl");
    const script = `
      import { openSync } from "node:fs";
      import { jsonLinesSink } from ${JSON.stringify(new URL("../../src/job/events/sinks/json-lines-sink.ts", import.meta.url).href)};
      const sink = jsonLinesSink(openSync(${JSON.stringify(path)}, "w"), { everyMs: 60_000 });
      for (let step = 0; step < 10; step++) sink.write({ kind: "step.finished", step });
      process.exit(3);`;
    const child = spawn(process.execPath, ["--input-type=module", "-e", script], { stdio: "inherit" });
    const [code] = await once(child, "exit");
    expect(code).toBe(3);
    expect((await readFile(path, "utf8")).trim().split("\n")).toHaveLength(10);
    await rm(folder, { recursive: true });
  });

  test("the sink never waits for a stream that takes nothing: it holds a bounded number of lines, then drops further ones", async () => {
    let resume: (() => void) | undefined;
    let isOpen = false;
    const chunks: string[] = [];
    const stream = new Writable({
      write(chunk: Buffer, _, done) {
        chunks.push(chunk.toString());
        if (isOpen) setImmediate(done);
        else resume = done;
      },
    });
    const sink = jsonLinesSink(stream);
    const text = "x".repeat(1 << 20);
    for (let step = 1; step <= 100; step++) sink.write(stamped("text.generated", { step, text }));
    isOpen = true;
    resume?.();
    await sink.close();
    const events = chunks
      .join("")
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line));
    const numWritten = events.filter((event) => event.kind === "text.generated").length;
    expect(numWritten).toBe(63);
    expect(events.slice(63)).toMatchObject([{ kind: "events.dropped", numDropped: 37 }]);
  });

  test("goes on without its stream when that fails", async () => {
    const stream = new Writable({ write: (_chunk, _encoding, done) => done(new Error("closed")) });
    const sink = jsonLinesSink(stream);
    sink.write(stamped("run.started"));
    await sink.close();
    sink.write(stamped("run.finished"));
    await sink.close();
  });

  test("the sink blocks nothing on a pipe without a reader, or on a closed one", async () => {
    const script = `
      import { jsonLinesSink } from ${JSON.stringify(new URL("../../src/job/events/sinks/json-lines-sink.ts", import.meta.url).href)};
      const sink = jsonLinesSink(1);
      const event = ${JSON.stringify({ ...samples["text.generated"], text: "x".repeat(1000), timeMs: 0, schemaVersion: 2 })};
      for (let step = 0; step < 1000; step++) sink.write(event);
      process.send("written");
      process.on("message", async () => { await sink.close(); process.send("closed"); process.disconnect(); });`;
    const child = spawn(process.execPath, ["--input-type=module", "-e", script], {
      stdio: ["ignore", "pipe", "inherit", "ipc"],
    });
    const said: unknown[] = [];
    const saying = new Promise<void>((resolve) => {
      child.on("message", (message) => {
        said.push(message);
        if (message === "closed") return resolve();
        // A megabyte was written into a pipe of 64 KiB without a reader, and the process still answers.
        child.stdout?.destroy();
        child.send("close");
      });
    });
    await saying;
    expect(said).toEqual(["written", "closed"]);
  });
});
