import { spawnSync } from "node:child_process";
import { chmodSync, mkdtempSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { keepToken, makeToken, sameToken } from "../../src/runtime/access/index.ts";

describe("tokens", () => {
  const folder = mkdtempSync(join(tmpdir(), "troupe-test-"));
  afterAll(() => rmSync(folder, { recursive: true }));

  it("tokens are 256 bits, never the same ones", () => {
    expect(makeToken()).toMatch(/^[0-9a-f]{64}$/);
    expect(makeToken()).not.toBe(makeToken());
  });

  it("tokens are equal only to themselves, whatever their lengths", () => {
    const token = makeToken();
    expect(sameToken(token, token)).toBe(true);
    for (const other of ["", token.slice(1), `${token}0`, token.toUpperCase(), makeToken()]) {
      expect(sameToken(other, token)).toBe(false);
    }
  });

  it("tokens are kept in a file that only its owner can read, from one run to the next", async () => {
    const path = join(folder, "deep", "token");
    const token = await keepToken(path);
    expect(statSync(path).mode & 0o777).toBe(0o600);
    expect(readFileSync(path, "utf8")).toBe(`${token}\n`);
    expect(await keepToken(path)).toBe(token);
  });

  it("tokens are not taken from a file that others can read, that is a link or a pipe, or that holds none", async () => {
    const open = join(folder, "open");
    writeFileSync(open, makeToken());
    chmodSync(open, 0o644);
    const link = join(folder, "link");
    await keepToken(join(folder, "target"));
    symlinkSync(join(folder, "target"), link);
    const empty = join(folder, "empty");
    writeFileSync(empty, "", { mode: 0o600 });
    // A pipe without a writer.
    const pipe = join(folder, "pipe");
    expect(spawnSync("mkfifo", ["-m", "600", pipe]).status).toBe(0);
    for (const path of [open, link, empty, pipe]) {
      await expect(keepToken(path)).rejects.toMatchObject({ code: "ACCESS_TOKEN" });
    }
  });
});
