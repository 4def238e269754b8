import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";

const bench = fileURLToPath(new URL("../../bench/gpt.ts", import.meta.url));
const model = "--ranks 1 --threads 1 --layers 1 --dim 256 --heads 4 --vocab 512 --seq 64 --batch 4 --steps 3";

/** The kinds of oneDNN's primitives that a bfloat16 run executes, one for each execution. */
function primitivesOf(graph: string): readonly string[] {
  const { stdout, stderr } = spawnSync(process.execPath, [bench, ...model.split(" "), "--graph", graph], {
    encoding: "utf8",
    env: { ...process.env, ONEDNN_VERBOSE: "1" },
  });
  const executed = /^onednn_verbose,v\d+,primitive,exec,cpu,(\w+),/gm;
  const kinds = [...stdout.matchAll(executed)].map(([, kind = ""]) => kind);
  expect(kinds, stderr).toContain("matmul");
  return kinds;
}

// Other processors have no products of bfloat16, and libtorch computes them without oneDNN.
describe.skipIf(!/\b(avx512_bf16|amx_bf16)\b/.test(readFileSync("/proc/cpuinfo", "utf8")))(
  "a step in bfloat16",
  () => {
    it.each(["off", "exact", "fast"])("reorders no weight: graph %s", (graph) => {
      expect(new Set(primitivesOf(graph))).toEqual(new Set(["matmul"]));
    });
  },
);
