import { chmodSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, expect, it, vi } from "vitest";
import { missingTools } from "../../scripts/setup/tools.mjs";

const folder = mkdtempSync(join(tmpdir(), "troupe-test-"));
afterAll(() => rmSync(folder, { recursive: true }));
afterEach(() => vi.unstubAllEnvs());

/** The Debian packages that bring what is missing where there are only these programs. */
function missingBeside(...programs: readonly string[]) {
  const path = mkdtempSync(join(folder, "bin-"));
  for (const program of programs) {
    const file = join(path, program);
    writeFileSync(file, `#!/bin/sh\necho "${program} version 4.0.0"\n`);
    chmodSync(file, 0o755);
  }
  vi.stubEnv("CXX", undefined);
  vi.stubEnv("PATH", path);
  return missingTools().map(({ debian }) => debian);
}

it("set-up asks for the program that cmake builds with, which apt leaves out: make, or ninja where that is chosen", () => {
  vi.stubEnv("CMAKE_GENERATOR", undefined);
  expect(missingBeside()).toEqual(["g++", "cmake", "make"]);
  expect(missingBeside("c++", "cmake")).toEqual(["make"]);
  expect(missingBeside("c++", "cmake", "make")).toEqual([]);
  vi.stubEnv("CMAKE_GENERATOR", "Ninja");
  expect(missingBeside("c++", "cmake", "make")).toEqual(["ninja-build"]);
  expect(missingBeside("c++", "cmake", "ninja")).toEqual([]);
});
