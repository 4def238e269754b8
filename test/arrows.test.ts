import { readdirSync, readFileSync } from "node:fs";
import { dirname, join, relative, resolve, sep } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";

const source = fileURLToPath(new URL("../src", import.meta.url));

/**
 * Left may import right, and what right may import. Every room may also import `events` and `errors`. A room is the
 * longest of these paths that a file lies in.
 */
const arrows: Readonly<Record<string, readonly string[]>> = {
  cli: ["trainer", "planner", "convert", "service", "sinks"],
  trainer: ["actors", "planner", "dashboard"],
  dashboard: ["access"],
  actors: ["engine/rank", "engine/shard", "engine/conductor"],
  "engine/conductor": ["job", "protocols", "inspect", "state/saving"],
  "engine/rank": ["job", "protocols", "inspect", "state/saving", "models"],
  "engine/shard": ["protocols", "inspect", "state/store"],
  "state/store": ["state/initial", "state/paging", "inspect"],
  "state/initial": ["state/saving"],
  "state/saving": ["protocols", "checkpoint"],
  inspect: ["state/paging"],
  "state/paging": ["protocols"],
  protocols: ["job", "anomalies", "runtime", "parallel", "offload"],
  job: ["optim", "data", "nn"],
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

/** Arrows that point up, to be turned: this list only ever gets shorter. */
const exceptions: Readonly<Record<string, readonly string[]>> = {
  "engine/conductor": ["actors", "engine/shard"],
  "engine/rank": ["actors"],
  "engine/shard": ["actors"],
  inspect: ["state/store"],
  protocols: ["actors", "engine/rank", "state/initial", "state/saving"],
  "state/initial": ["actors"],
  "state/saving": ["actors", "state/store"],
  "state/store": ["actors"],
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
    const rooms = new Set(sourceFiles().map((file) => roomOf(relative(source, file))));
    expect([...rooms].filter((room) => room !== "index" && !(room in arrows))).toEqual([]);
  });

  it("makes no circle of rooms", () => {
    const rooms = Object.keys(arrows).filter((room) => room !== "events" && room !== "errors");
    expect(rooms.filter((room) => mayImport(room).has(room))).toEqual([]);
  });

  it("points down only", () => {
    const wrong = imports
      .filter(
        ({ from, to }) =>
          from !== "index" && from !== to && !mayImport(from).has(to) && !exceptions[from]?.includes(to),
      )
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

/** `nn/linear.ts` belongs to `nn`, `engine/rank/batch-source.ts` to `engine/rank`, `errors.ts` to `errors`. */
function roomOf(path: string): string {
  const parts = path.replace(/\.ts$/, "").split(sep);
  const folders = parts.map((_, index) => parts.slice(0, parts.length - index).join("/"));
  return folders.find((folder) => folder in arrows) ?? parts[0] ?? "";
}

/** All that arrows lead to from a room. */
function mayImport(room: string): Set<string> {
  const reached = new Set(["events", "errors"]);
  const visit = (from: string) => {
    for (const next of arrows[from] ?? []) {
      if (!reached.has(next)) visit(next);
      reached.add(next);
    }
  };
  visit(room);
  return reached;
}
