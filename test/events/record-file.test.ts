import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import type { Outcome } from "../../src/job/events/sinks/outlet.ts";
import { RecordFile } from "../../src/job/events/sinks/record-file.ts";

/** A run's folder, and the record of its events in it. */
function record() {
  const above = mkdtempSync(join(tmpdir(), "troupe-record-"));
  onTestFinished(() => rmSync(above, { recursive: true, force: true }));
  const folder = join(above, "run");
  mkdirSync(folder);
  const path = join(folder, "events.jsonl");
  const outlet = RecordFile.open({ path: () => path, appends: true, mayWait: true });
  onTestFinished(() => outlet.close());
  const write = async (text: string): Promise<Outcome> => {
    const bytes = Buffer.from(`${text}\n`);
    return outlet.write({ bytes, ends: [bytes.length] });
  };
  return { above, folder, path, write };
}

const linesOf = (path: string) => readFileSync(path, "utf8").split("\n").slice(0, -1);

describe("the record in a run's folder", () => {
  test("goes on in the folder that was moved, and writes nothing into another run's that takes its place", async () => {
    const { above, folder, path, write } = record();
    await write("one");
    renameSync(folder, join(above, "moved"));
    mkdirSync(folder);
    writeFileSync(path, "another's\n");
    expect(await write("two")).toEqual({ numPieces: 1 });
    expect(linesOf(path)).toEqual(["another's"]);
    expect(linesOf(join(above, "moved", "events.jsonl"))).toEqual(["one", "two"]);
  });

  test("fails where its folder was deleted, also once another lies there", async () => {
    const { folder, write } = record();
    await write("one");
    rmSync(folder, { recursive: true });
    expect((await write("two")).error?.code).toBe("ESTALE");
    mkdirSync(folder);
    expect((await write("two")).error?.message).toContain(
      `${folder} is not the folder that the run has begun in`,
    );
    expect(readdirSync(folder)).toEqual([]);
  });

  test("is begun again where the file alone was deleted", async () => {
    const { path, write } = record();
    await write("one");
    rmSync(path);
    expect(await write("two")).toEqual({ numPieces: 1 });
    expect(linesOf(path)).toEqual(["two"]);
  });

  test("the record file follows no link, and leaves the link's target unchanged", async () => {
    const { above, path, write } = record();
    const mine = join(above, "mine");
    writeFileSync(mine, "mine\n");
    symlinkSync(mine, path);
    expect((await write("one")).error?.code).toBe("ELOOP");
    expect(linesOf(mine)).toEqual(["mine"]);
  });
});
