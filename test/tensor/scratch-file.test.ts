import { spawnSync } from "node:child_process";
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import {
  arange,
  PAGE_BYTES,
  pageAligned,
  releaseRef,
  ScratchFile,
  shareRef,
  zeros,
} from "../../src/compute/tensor/index.ts";
import { canInject, countedEnv } from "../fixtures/can-inject.ts";
import { refusal } from "./numbers.ts";

const floatsInPage = PAGE_BYTES / 4;
// Three and a bit of the pieces that native threads move at a time.
const numel = 3 * 2 ** 18 + floatsInPage;

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "troupe-scratch-"));
});
afterAll(() => rmSync(folder, { recursive: true }));

function floats(first: number) {
  return pageAligned(numel, "float32").copy_(arange(first + numel, { start: first, dtype: "float32" }));
}

describe("ScratchFile", () => {
  it("a scratch file returns what was written, whatever other transfers are under way", async () => {
    const numTensors = 6;
    using file = new ScratchFile(folder, numTensors * numel * 4);
    const written = Array.from({ length: numTensors }, (_, index) => floats(index));
    await Promise.all(written.map((tensor, index) => file.write(tensor, index * numel * 4)));
    const read = written.map(() => pageAligned(numel, "float32"));
    await Promise.all(read.map((tensor, index) => file.read(tensor, index * numel * 4)));
    for (const [index, tensor] of read.entries())
      expect(tensor.equal(written[index] as typeof tensor)).toBe(true);
  });

  it("reads a part, at a page, in any dtype", async () => {
    using file = new ScratchFile(folder, numel * 4);
    await file.write(floats(0), 0);
    const part = pageAligned(2 * floatsInPage, "bfloat16");
    await file.read(part, 5 * PAGE_BYTES);
    const bits = floats(0)
      .narrow(0, 5 * floatsInPage, floatsInPage)
      .toTypedArray();
    expect(part.toTypedArray()).toEqual(new Uint16Array(bits.buffer));
  });

  it("is in no directory, so that nothing is left of it however its process ends", () => {
    using file = new ScratchFile(folder, PAGE_BYTES);
    expect(file.sizeBytes).toBe(PAGE_BYTES);
    expect(readdirSync(folder)).toEqual([]);
  });

  it("transfers under way end after the scratch file is closed", async () => {
    const file = new ScratchFile(folder, numel * 4);
    const written = file.write(floats(0), 0);
    file[Symbol.dispose]();
    await expect(written).resolves.toBeUndefined();
    expect(refusal(() => file.read(pageAligned(floatsInPage, "float32"), 0))?.message).toContain("closed");
  });

  it("refuses memory, offsets and sizes that are not complete pages, and offsets beyond the end", () => {
    using file = new ScratchFile(folder, 2 * PAGE_BYTES);
    const page = pageAligned(floatsInPage, "float32");
    for (const [tensor, offset] of [
      [zeros(floatsInPage + 1).narrow(0, 1, floatsInPage), 0],
      [page.narrow(0, 0, 7), 0],
      [page, 8],
      [page, 2 * PAGE_BYTES],
      [page, -PAGE_BYTES],
    ] as const) {
      expect(refusal(() => file.write(tensor, offset))).toMatchObject({ code: "TENSOR_ARGUMENT" });
    }
  });

  it("refuses to read into what another thread reads", () => {
    using file = new ScratchFile(folder, PAGE_BYTES);
    const page = pageAligned(floatsInPage, "float32");
    const ref = shareRef(page);
    expect(refusal(() => file.read(page, 0))).toMatchObject({ code: "TENSOR_SHARED" });
    releaseRef(ref);
  });

  it("refuses a folder that is not there, and a size that the disk has no room for, before it takes any", () => {
    const make = (directory: string, sizeBytes: number) =>
      refusal(() => new ScratchFile(directory, sizeBytes));
    const missing = join(folder, "missing");
    expect(make(missing, PAGE_BYTES)).toMatchObject({ code: "SCRATCH_FILE" });
    expect(make(missing, PAGE_BYTES)?.message).toMatch(/expected to make a file .*missing.*No such file/);
    expect(make(folder, 2 ** 52)).toMatchObject({ code: "SCRATCH_FILE" });
    expect(make(folder, 2 ** 52)?.message).toMatch(/expected to reserve .*No space left on device/);
  });
});

describe.skipIf(!canInject)(
  "with faults injected by strace (skipped where it is not there or not allowed)",
  () => {
    it.each([
      ["EIO", "pwrite64", "write", "Input/output error"],
      ["ENOSPC", "pwrite64", "write", "No space left on device"],
      ["ENOSPC", "fallocate", "reserve", "No space left on device"],
    ])("%s at a %s is one typed error", (errno, call, action, reason) => {
      const script = fileURLToPath(new URL("../fixtures/tensor/write-scratch.ts", import.meta.url));
      const inject = ["-f", "-qq", "-o", "/dev/null", "-e", `trace=${call}`];
      const args = [...inject, "-e", `inject=${call}:error=${errno}`, process.execPath, script, folder];
      const { stdout } = spawnSync("strace", args, { encoding: "utf8", env: countedEnv });
      expect(JSON.parse(stdout)).toMatchObject({ code: "SCRATCH_FILE", fields: { action, reason } });
      expect(readdirSync(folder)).toEqual([]);
    });
  },
);
