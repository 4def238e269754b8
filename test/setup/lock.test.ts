import { spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, readdirSync, rmSync, statSync, utimesSync, writeFileSync } from "node:fs";
import { hostname, tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { withLock } from "../../scripts/setup/lock.mjs";
import { patience } from "../fixtures/patience.ts";

let folder: string;
let file: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "troupe-lock-"));
  file = join(folder, "build", "lock");
  // The line that names the awaited process.
  vi.spyOn(process.stderr, "write").mockReturnValue(true);
});
afterEach(() => {
  vi.restoreAllMocks();
  rmSync(folder, { recursive: true });
});

it("lets one in at a time and gives the lock back", async () => {
  let inside = 0;
  const seen: number[] = [];
  const body = async () => {
    inside += 1;
    await new Promise((resolve) => setImmediate(resolve));
    seen.push(inside);
    inside -= 1;
  };
  await Promise.all([withLock(file, body), withLock(file, body), withLock(file, body)]);
  expect(seen).toEqual([1, 1, 1]);
  expect(existsSync(file)).toBe(false);
});

it("gives the lock back when the body throws", async () => {
  await expect(withLock(file, () => Promise.reject(new Error("no compiler")))).rejects.toThrow("no compiler");
  expect(existsSync(file)).toBe(false);
});

it("a lock that is no longer touched is taken over: half written, of another host, or of a process whose number is reused", async () => {
  await withLock(file, async () => {});
  const texts = [
    "",
    '{"pid":',
    JSON.stringify({ pid: 1, host: "gone" }),
    JSON.stringify({ pid: process.pid, host: hostname() }),
  ];
  for (const text of texts) {
    writeFileSync(file, text);
    await expect(withLock(file, async () => "built", { leftMs: 250 })).resolves.toBe("built");
    expect(readdirSync(join(folder, "build"))).toEqual([]);
  }
});

it("a lock is touched while its holder works, so that no other process takes it over", async () => {
  await withLock(file, async () => {
    utimesSync(file, 0, 0);
    await vi.waitUntil(() => statSync(file).mtimeMs > 0, patience);
  });
});

it("takes over the lock of a process that died", async () => {
  const dead = spawnSync(process.execPath, ["-e", ""]).pid;
  await withLock(file, async () => {});
  writeFileSync(file, JSON.stringify({ pid: dead, host: hostname() }));
  await expect(withLock(file, async () => "built")).resolves.toBe("built");
});
