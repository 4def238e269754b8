import { spawnSync } from "node:child_process";
import { appendFileSync, mkdirSync, mkdtempSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it, vi } from "vitest";
import { findEventFile, followFile } from "../../src/job/dashboard/index.ts";
import { type TroupeEvent, toJson } from "../../src/job/events/index.ts";
import { patience } from "../fixtures/patience.ts";
import { stepped } from "./stepped.ts";

/** Follows a file until the test is over. */
class Following implements Disposable {
  readonly reported: (TroupeEvent | "reset")[] = [];
  readonly #abort = new AbortController();
  #awaited: { numReported: number; resolve: () => void } | undefined;

  constructor(path: string) {
    const tell = (what: TroupeEvent | "reset") => {
      this.reported.push(what);
      if (this.reported.length >= (this.#awaited?.numReported ?? Number.POSITIVE_INFINITY))
        this.#awaited?.resolve();
    };
    void followFile(path, { write: tell, reset: () => tell("reset") }, this.#abort.signal);
  }

  /** The steps reported, once so many things were. */
  async after(numReported: number): Promise<readonly (number | string)[]> {
    if (this.reported.length < numReported) {
      await new Promise<void>((resolve) => {
        this.#awaited = { numReported, resolve };
      });
    }
    return this.reported.map((one) => (one === "reset" ? one : (one as { step: number }).step));
  }

  [Symbol.dispose](): void {
    this.#abort.abort();
  }
}

describe("followFile", () => {
  const folder = mkdtempSync(join(tmpdir(), "troupe-test-"));
  const line = (step: number, changed = {}) => `${toJson(stepped(step, changed))}\n`;
  afterAll(() => rmSync(folder, { recursive: true }));

  it("waits for a file where a pipe stands in its place, and stops on request", async () => {
    const path = join(folder, "pipe.jsonl");
    expect(spawnSync("mkfifo", [path]).status).toBe(0);
    const abort = new AbortController();
    const reported: TroupeEvent[] = [];
    const reader = { write: (event: TroupeEvent) => reported.push(event), reset: () => {} };
    const following = followFile(path, reader, abort.signal);
    // Opening the pipe would block for ever.
    writeFileSync(join(folder, "pipe.new"), line(1));
    renameSync(join(folder, "pipe.new"), path);
    await vi.waitFor(() => expect(reported).toHaveLength(1), patience);
    abort.abort();
    await following;
  });

  it("waits for a file, reads it as it grows, and reads only complete lines", async () => {
    const path = join(folder, "growing.jsonl");
    using following = new Following(path);
    writeFileSync(path, line(1) + line(2).slice(0, 20));
    expect(await following.after(1)).toEqual([1]);
    appendFileSync(path, line(2).slice(20) + line(3));
    expect(await following.after(3)).toEqual([1, 2, 3]);
  });

  it("reads the numbers that JSON has none for", async () => {
    const path = join(folder, "odd.jsonl");
    writeFileSync(path, line(1, { lossNats: Number.NaN, gradientNorm: Number.POSITIVE_INFINITY }));
    using following = new Following(path);
    await following.after(1);
    expect(following.reported[0]).toMatchObject({
      lossNats: Number.NaN,
      gradientNorm: Number.POSITIVE_INFINITY,
    });
  });

  it("begins again with a file that was replaced or cut short", async () => {
    const path = join(folder, "replaced.jsonl");
    writeFileSync(path, line(1) + line(2));
    using following = new Following(path);
    await following.after(2);
    writeFileSync(`${path}.new`, line(10));
    renameSync(`${path}.new`, path);
    expect(await following.after(4)).toEqual([1, 2, "reset", 10]);
    writeFileSync(path, "");
    await following.after(5);
    appendFileSync(path, line(20));
    expect(await following.after(6)).toEqual([1, 2, "reset", 10, "reset", 20]);
  });

  it("followFile skips lines that are no event, however long they are", async () => {
    const path = join(folder, "odd-lines.jsonl");
    const junk = ["", "{", "null", "17", '{"kind":1}', '{"kind":"step.finished"}', "x".repeat(20 << 20)];
    writeFileSync(path, `${junk.join("\n")}\n${line(1)}`);
    using following = new Following(path);
    expect(await following.after(1)).toEqual([1]);
  });

  it("finds the file of a run's folder, and refuses what can be neither", async () => {
    mkdirSync(join(folder, "run"));
    expect(await findEventFile(join(folder, "run"))).toBe(join(folder, "run", "events.jsonl"));
    expect(await findEventFile(join(folder, "to-come.jsonl"))).toBe(join(folder, "to-come.jsonl"));
    for (const path of [join(folder, "nowhere"), join(folder, "nowhere", "a.jsonl"), "/dev/null"]) {
      await expect(findEventFile(path)).rejects.toMatchObject({ code: "DASHBOARD_SOURCE" });
    }
  });
});
