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

/** Calls a function of ours that can be stopped, by a script of constant text. */
const stopping = {
  file: "src/library/data/chats/template.ts",
  uses: ['vm.Script("body()")', "vm.createContext({})"],
};

function sourceOf(file: string): string {
  const text = readFileSync(join(root, file), "utf8");
  const uses = text.match(/\bvm\.\w+\(.*\)/g) ?? [];
  const isStopping = file === stopping.file && uses.join() === stopping.uses.join();
  return isStopping ? text.replace('"node:vm"', "") : text;
}

describe("what is read from files, sockets and checkpoints is data:", () => {
  it.each(ways)("nothing here %s", (_what, way, lines) => {
    expect(lines.filter((line) => !way.test(line))).toEqual([]);
    expect(sources.length).toBeGreaterThan(300);
    expect(sources.filter((file) => way.test(sourceOf(file)))).toEqual([]);
  });
});
