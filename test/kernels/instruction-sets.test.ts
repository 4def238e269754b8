import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { describe, expect, it } from "vitest";
import { nativeInfo } from "../../src/compute/tensor/index.ts";

const run = promisify(execFile);
const script = fileURLToPath(new URL("./digest.ts", import.meta.url));

async function digests(isa: string): Promise<Record<string, string>> {
  const { stdout } = await run(process.execPath, [script], { env: { ...process.env, TROUPE_ISA: isa } });
  return JSON.parse(stdout);
}

const order = ["scalar", "avx2", "avx512", "amx"];
const available = order.slice(0, order.indexOf(nativeInfo().capability) + 1);

describe("instruction sets", () => {
  it.skipIf(available.length < 2)("give the same bits: every kernel at every awkward size", async () => {
    const [scalar, ...others] = await Promise.all(available.map(digests));
    expect(scalar?.capability).toBe("scalar");
    for (const other of others) expect({ ...other, capability: "scalar" }).toEqual(scalar);
  });

  it("must be ones this machine has when forced", async () => {
    await expect(digests("sse9")).rejects.toThrow(/TROUPE_ISA to be scalar, avx2, avx512 or amx/);
  });
});
