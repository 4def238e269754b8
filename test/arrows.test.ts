import { readdirSync, readFileSync } from "node:fs";
import { dirname, join, relative, resolve, sep } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";

const source = fileURLToPath(new URL("../src", import.meta.url));

/** Left may import right, and what right may import. Every room may also import `events` and `errors`. */
const arrows: Readonly<Record<string, readonly string[]>> = {
  cli: ["trainer", "planner", "convert", "service", "sinks"],
  trainer: ["actors", "planner", "dashboard"],
  dashboard: ["access"],
  actors: ["anomalies", "runtime", "parallel", "optim", "data", "checkpoint", "nn", "models", "offload"],
  planner: ["parallel", "models", "sinks"],
  convert: ["checkpoint", "models"],
  service: ["checkpoint", "runtime", "access"],
  parallel: ["nn", "optim", "collectives"],
  models: ["nn"],
  nn: ["tensor"],
  optim: ["tensor"],
  data: ["tensor"],
  checkpoint: ["tensor"],
  offload: ["tensor"],
  runtime: [],
  collectives: ["tensor"],
  tensor: [],
  sinks: ["access"],
  access: [],
  anomalies: [],
  events: [],
  errors: [],
};

interface Import {
  /** Relative to src/. */
  readonly file: string;
  readonly from: string;
  readonly to: string;
  /** Relative to src/. */
  readonly target: string;
}

describe("import arrows", () => {
  // What lies outside src (the addon, the package's own description) is no room.
  const imports = sourceFiles()
    .flatMap(importsOf)
    .filter(({ target }) => !target.startsWith(".."));

  it("knows every room", () => {
    const rooms = readdirSync(source, { withFileTypes: true })
      .filter((entry) => entry.isDirectory())
      .map((entry) => entry.name);
    expect(rooms.filter((room) => !(room in arrows))).toEqual([]);
  });

  it("points down only", () => {
    const wrong = imports
      .filter(({ from, to }) => from !== "index" && from !== to && !mayImport(from).has(to))
      .map(({ file, to, target }) => `${file} may not import ${to}/ (${target})`);
    expect(wrong).toEqual([]);
  });

  it("enters a room by its index.ts", () => {
    const wrong = imports
      .filter(({ from, to, target }) => from !== to && to !== "errors" && target !== join(to, "index.ts"))
      .map(({ file, target }) => `${file} imports ${target}, not that room's index.ts`);
    expect(wrong).toEqual([]);
  });

  it("keeps the addon behind tensor/native.ts", () => {
    const loaders = sourceFiles().filter((file) =>
      /\bcreateRequire\b|process\.dlopen/.test(readFileSync(file, "utf8")),
    );
    expect(loaders.map((file) => relative(source, file))).toEqual([join("tensor", "native.ts")]);
  });
});

function sourceFiles(): string[] {
  return readdirSync(source, { recursive: true, encoding: "utf8" })
    .filter((file) => file.endsWith(".ts"))
    .map((file) => join(source, file))
    .sort();
}

/** Imports and re-exports, static and dynamic, types too, and the modules of workers and actors named by URL. */
function importsOf(path: string): Import[] {
  const patterns = /(?:\bfrom|\bimport|\bimport\(|\bnew URL\()\s*["'](\.[^"']*)["']/g;
  const file = relative(source, path);
  return [...readFileSync(path, "utf8").matchAll(patterns)].map(([, specifier = ""]) => {
    const target = relative(source, resolve(dirname(path), specifier));
    return { file, from: roomOf(file), to: roomOf(target), target };
  });
}

/** `nn/linear.ts` belongs to `nn`, `errors.ts` to `errors`. */
function roomOf(path: string): string {
  return (path.split(sep)[0] ?? "").replace(/\.ts$/, "");
}

function mayImport(room: string): Set<string> {
  const direct = arrows[room] ?? [];
  return new Set(["events", "errors", ...direct, ...direct.flatMap((next) => [...mayImport(next)])]);
}
