import { execFileSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { loadNative, nativeInfo, numThreads } from "../../src/compute/tensor/index.ts";
import { native } from "../../src/compute/tensor/native.ts";

/** Runs a module text in a Node of its own with another addon path; its standard output. */
function run(addon: string, body: string): string {
  const index = new URL("../../src/compute/tensor/index.ts", import.meta.url).href;
  const text = `const tensor = await import(${JSON.stringify(index)}); ${body}`;
  return execFileSync(process.execPath, ["--input-type=module", "-e", text], {
    env: { ...process.env, TROUPE_ADDON: addon },
    encoding: "utf8",
  });
}

const report =
  "try { tensor.zeros([1]); } catch (error) { console.log(error.name, error.code, error.message); }";

describe("the addon", () => {
  it("is not needed to import the room, only to compute", () => {
    expect(run("/nowhere/troupe.node", "console.log(typeof tensor.zeros);").trim()).toBe("function");
    const output = run("/nowhere/troupe.node", report);
    expect(output).toContain("TroupeError NATIVE_UNAVAILABLE");
    expect(output).toContain("/nowhere/troupe.node");
    expect(output).toContain("npx troupe doctor");
  });

  it("is reported when it is there and cannot be loaded", () => {
    const output = run(fileURLToPath(import.meta.url), report);
    expect(output).toContain("TroupeError NATIVE_UNAVAILABLE");
    expect(output).toContain("expected an addon that can be loaded");
  });

  it("says what it was built with", () => {
    loadNative();
    const info = nativeInfo();
    expect(info.torch).toMatch(/^\d+\.\d+\.\d+/);
    expect(["amx", "avx512", "avx2", "scalar"]).toContain(info.capability);
    expect(info.numThreads).toBe(numThreads());
  });

  it("passes its own test", () => {
    expect(native().selfTest()).toEqual({ matmul: true, gloo: nativeInfo().gloo });
  });

  it("lists the operators that libtorch has", () => {
    expect(native().schemas("aten")).toContain("aten::relu(Tensor self) -> Tensor");
  });
});
