import { spawnSync } from "node:child_process";
import { closeSync, constants, mkdtempSync, openSync, readSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import type { OutputFailed, OutputResumed } from "../../src/job/events/kinds/delivery.ts";
import { BoundedWriter, type BoundedWriterOptions } from "../../src/job/events/sinks/bounded-writer.ts";
import type { Batch, Outlet } from "../../src/job/events/sinks/outlet.ts";
import { RecordFile } from "../../src/job/events/sinks/record-file.ts";

/** An outlet whose disk is full while `isFull`: half a piece goes out then, and is taken back. */
class Disk implements Outlet {
  readonly name = "disk";
  isFull = false;
  text = "";

  async write({ bytes, ends }: Batch) {
    const numPieces = this.isFull ? 0 : ends.length;
    if (numPieces > 0) this.text += Buffer.from(bytes).toString();
    return this.isFull
      ? { numPieces, error: Object.assign(new Error("ENOSPC: full"), { code: "ENOSPC" }) }
      : { numPieces };
  }

  writeNow() {
    return undefined;
  }

  async close() {}
}

function writing(outlet: Outlet, options: BoundedWriterOptions = {}) {
  const reported: (OutputFailed | OutputResumed)[] = [];
  const writer = new BoundedWriter(outlet, options);
  writer.onTrouble((trouble) => reported.push(trouble));
  return { writer, reported };
}

/** A pipe with a name, and its reader. */
function pipe() {
  const folder = mkdtempSync(join(tmpdir(), "troupe-pipe-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const path = join(folder, "pipe");
  expect(spawnSync("mkfifo", [path]).status).toBe(0);
  const { O_RDONLY, O_NONBLOCK } = constants;
  return { path, openReader: () => openSync(path, O_RDONLY | O_NONBLOCK) };
}

describe("a disk that is full", () => {
  test("a full disk is reported once; lines that do not fit are counted, and the gap is marked", async () => {
    const disk = new Disk();
    const notice = (numLost: number) => `${numLost} lost\n`;
    const { writer, reported } = writing(disk, { maxHeldBytes: 50, notice });
    disk.isFull = true;
    for (let line = 0; line < 20; line++) writer.write(`line ${String(line).padStart(4, "0")}\n`);
    await new Promise((resolve) => setImmediate(resolve));
    expect(reported).toMatchObject([{ kind: "output.failed", output: "disk" }]);
    disk.isFull = false;
    await writer.close();
    expect(disk.text).toBe("line 0000\nline 0001\nline 0002\nline 0003\nline 0004\n15 lost\n");
    expect(reported.slice(1)).toEqual([{ kind: "output.resumed", output: "disk", numLost: 15 }]);
  });

  test("a disk that stays full is reported again at the end, with the number of lost lines", async () => {
    const disk = new Disk();
    const { writer, reported } = writing(disk, { maxHeldBytes: 50 });
    writer.write("out\n");
    await new Promise((resolve) => setImmediate(resolve));
    disk.isFull = true;
    for (let line = 0; line < 20; line++) writer.write(`line ${String(line).padStart(4, "0")}\n`);
    await writer.close();
    expect(disk.text).toBe("out\n");
    expect(reported.map((each) => ("numLost" in each ? each.numLost : undefined))).toEqual([undefined, 20]);
    expect(reported[1]).toMatchObject({ kind: "output.failed", error: { code: "ENOSPC" } });
  });
});

test("a piece that is too large by itself is lost and reported, and the next one is written", async () => {
  const disk = new Disk();
  const { writer, reported } = writing(disk, { maxHeldBytes: 8 });
  writer.write("123456789\n");
  writer.write("a\n");
  await writer.close();
  expect(disk.text).toBe("a\n");
  expect(reported).toMatchObject([{ kind: "output.failed" }, { kind: "output.resumed", numLost: 1 }]);
});

describe("a pipe", () => {
  test("a pipe without a reader is refused, not waited for", () => {
    const { path } = pipe();
    expect(() => RecordFile.open({ path: () => path })).toThrow(/ENXIO/);
  });

  test("a pipe whose reader stops is closed at the end, and unread lines are counted", async () => {
    const { path, openReader } = pipe();
    const reader = openReader();
    const { writer, reported } = writing(RecordFile.open({ path: () => path }), { patienceMs: 20 });
    const line = `${"x".repeat(1023)}\n`;
    for (let count = 0; count < 1000; count++) writer.write(line);
    await writer.close();
    const taken = readSync(reader, Buffer.alloc(1 << 20));
    closeSync(reader);
    const failed = reported.filter((each) => each.kind === "output.failed");
    expect(failed.at(-1)).toMatchObject({ numLost: 1000 - Math.floor(taken / line.length) });
    expect(taken).toBeGreaterThan(0);
  });

  test("a pipe whose reader has closed takes no more lines, and is reported once and at the end", async () => {
    const { path, openReader } = pipe();
    const reader = openReader();
    const { writer, reported } = writing(RecordFile.open({ path: () => path }), { prompt: true });
    writer.write("read\n");
    expect(readSync(reader, Buffer.alloc(5))).toBe(5);
    closeSync(reader);
    for (let count = 0; count < 3; count++) writer.write("unread\n");
    await writer.close();
    expect(reported).toMatchObject([
      { kind: "output.failed", output: path, error: { code: "EPIPE" } },
      { kind: "output.failed", numLost: 3 },
    ]);
  });
});
