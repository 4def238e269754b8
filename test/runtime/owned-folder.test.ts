import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { makeOwnedFolder } from "../../src/runtime/index.ts";

let root: string;
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), "troupe-owned-"));
});
afterEach(() => rmSync(root, { recursive: true }));

test("only its maker's user may enter a shared folder, and that user's other folders are left alone", () => {
  const first = makeOwnedFolder(root, "work-");
  const second = makeOwnedFolder(root, "work-");
  expect(statSync(first).mode & 0o777).toBe(0o700);
  expect(existsSync(first)).toBe(true);
  expect(second).not.toBe(first);
});

test("what a process left that has ended is removed, also where another has its number now; nothing else is", async () => {
  const mine = makeOwnedFolder(root, "work-");
  const [, namespace, pid, startedAt] = basename(mine).split("-");
  const dead = spawn("true");
  await once(dead, "exit");
  const ofDead = join(root, `work-${namespace}-${dead.pid}-1-left`);
  const ofFormer = join(root, `work-${namespace}-${pid}-${Number(startedAt) - 1}-left`);
  for (const folder of [ofDead, ofFormer]) {
    mkdirSync(folder);
    writeFileSync(join(folder, "file"), "something");
  }
  const foreign = ["work-elsewhere-1-1-left", `other-${namespace}-${dead.pid}-1-left`];
  for (const name of foreign) mkdirSync(join(root, name));
  const next = makeOwnedFolder(root, "work-");
  expect(readdirSync(root).toSorted()).toEqual([...foreign, basename(mine), basename(next)].toSorted());
});
