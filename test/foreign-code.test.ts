import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";

const root = fileURLToPath(new URL("..", import.meta.url));
const sources = globSync(
  ["src/**/*.ts", "native/**/*.{cc,h,cu}", "scripts/**/*.{mjs,ts}", "bin/*", "examples/**/*.{ts,py}"],
  // Packages of a script's own, where they are installed.
  { cwd: root, exclude: ["**/node_modules/**"] },
);

/** Patterns of code that would run foreign code, with lines that each must find. */
const ways: readonly [string, RegExp, readonly string[]][] = [
  [
    "evaluates text",
    /(?<![\w.])eval\((?!\))|\beval: true\b|\bnew Function\(|["']node:vm["']/,
    ["eval(text)", "new Worker(text, { eval: true })", "new Function(text)", 'from "node:vm"'],
  ],
  ["takes V8's own format", /\bdeserialize\(/, ["v8.deserialize(bytes)"]],
  [
    "unpickles",
    /torch::(jit::)?(load|pickle_load)\(|torch\.load\(|\bpickle\.loads?\(|\ballow_pickle\b/,
    ["torch::load(tensor, path)", "torch::jit::load(path)", "torch.load(path)", "pickle.load(file)"],
  ],
];

describe("what is read from files, sockets and checkpoints is data:", () => {
  it.each(ways)("nothing here %s", (_what, way, lines) => {
    expect(lines.filter((line) => !way.test(line))).toEqual([]);
    expect(sources.length).toBeGreaterThan(300);
    expect(sources.filter((file) => way.test(readFileSync(join(root, file), "utf8")))).toEqual([]);
  });
});
