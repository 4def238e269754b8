import { existsSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join, relative, resolve, sep } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";

const source = fileURLToPath(new URL("../src", import.meta.url));

/** Left may import right, and what right may import: first the wings, which are the folders of src/. */
const wings: Readonly<Record<string, readonly string[]>> = {
  entries: ["tools"],
  tools: ["actors"],
  actors: ["job"],
  job: ["library"],
  library: ["compute", "runtime"],
  compute: ["errors"],
  runtime: ["errors"],
  errors: [],
};

/** Every room may import these, where its wing may. */
const common = ["job/events", "errors", "errors/untrusted"];

/** Then the rooms. A room is the longest of these paths that a file lies in. */
const arrows: Readonly<Record<string, readonly string[]>> = {
  "tools/cli": [
    "actors/trainer",
    "tools/planner",
    "tools/service",
    "tools/sinks",
    "library/convert",
    "library/export",
    "library/hub",
    "job/rapidformer",
  ],
  "tools/planner": ["actors/engine/rank", "tools/sinks"],
  "tools/service": ["actors/trainer", "job/http"],
  "tools/sinks": ["job/http", "library/checkpoint", "library/protobuf"],
  "actors/trainer": ["actors", "actors/preload", "actors/launch", "job/dashboard", "job/options"],
  "actors/launch": ["runtime", "compute/collectives", "job/options"],
  actors: ["actors/engine/rank", "actors/shard", "actors/engine/conductor", "actors/engine/relay"],
  "actors/preload": ["actors/protocols", "compute/collectives"],
  "actors/engine/conductor": [
    "job",
    "actors/protocols",
    "actors/inspect",
    "actors/state/saving",
    "actors/engine/relay",
  ],
  "actors/engine/relay": ["actors/protocols"],
  "actors/engine/rank": [
    "job",
    "actors/protocols",
    "actors/inspect",
    "actors/state/saving",
    "library/models",
  ],
  "actors/shard": ["actors/inspect", "actors/shard/store"],
  "actors/shard/store": ["actors/state/initial", "actors/state/paging", "actors/inspect"],
  "actors/state/initial": ["actors/state/saving"],
  "actors/state/saving": ["actors/protocols", "library/checkpoint"],
  "actors/inspect": ["actors/state/paging"],
  "actors/state/paging": ["actors/protocols"],
  "actors/protocols": [
    "job",
    "job/anomalies",
    "job/options",
    "runtime",
    "compute/offload",
    "library/checkpoint",
  ],
  "compute/offload": ["compute/tensor"],
  "job/rapidformer": ["job/tasks"],
  "job/tasks": ["job", "library/models", "library/metrics"],
  "job/options": ["compute/parallel", "job/anomalies"],
  "job/dashboard": ["job/http"],
  "job/http": ["runtime/access"],
  job: ["runtime", "runtime/module-texts", "compute/parallel", "library/data", "library/deltas"],
  "job/anomalies": [],
  "job/events": [],
  "library/hub": ["library/checkpoint"],
  "library/export": ["library/convert", "library/data", "library/deltas", "library/protobuf"],
  "library/convert": ["library/checkpoint", "library/models"],
  "library/deltas": ["library/models", "library/checkpoint"],
  "library/models": ["compute/nn", "compute/objectives"],
  "library/checkpoint": ["compute/tensor", "runtime/process-mark", "library/s3-client"],
  "library/data": ["compute/tensor", "compute/samples", "library/s3-client"],
  "library/s3-client": [],
  "library/metrics": [],
  "library/protobuf": [],
  "compute/parallel": ["compute/nn", "compute/optim", "compute/collectives"],
  "compute/objectives": ["compute/tensor"],
  "compute/nn": ["compute/tensor", "compute/definitions"],
  "compute/optim": ["compute/tensor", "compute/definitions", "compute/samples"],
  "compute/collectives": ["compute/tensor"],
  "compute/tensor": [],
  "compute/definitions": [],
  "compute/samples": [],
  runtime: ["runtime/process-mark", "runtime/relative-imports", "runtime/module-texts", "runtime/access"],
  "runtime/access": [],
  "runtime/process-mark": [],
  "runtime/relative-imports": [],
  "runtime/module-texts": [],
  "errors/untrusted": ["errors"],
  "errors/node-version": ["errors"],
  errors: [],
};

/** The same between the folders of a room that is entered by one index.ts; a file that lies in no folder is its own. */
const within: Readonly<Record<string, typeof arrows>> = {
  runtime: {
    "actor-system": ["pool", "timeout-ladder"],
    pool: ["supervision"],
    supervision: ["system"],
    system: ["hosting"],
    hosting: ["actor", "transport/unix", "transport/tcp"],
    actor: ["messaging", "inspection"],
    messaging: ["transport"],
    "transport/unix": ["transport/hub"],
    "transport/tcp": ["transport/hub"],
    "transport/hub": ["transport"],
    transport: ["mailbox", "clock"],
    mailbox: ["protocol"],
    inspection: ["protocol", "clock"],
    protocol: [],
    clock: [],
    "timeout-ladder": [],
  },
  "compute/nn": {
    moe: ["attention"],
    attention: ["layers"],
    init: ["module"],
    layers: ["module", "losses"],
    module: ["random"],
    random: [],
    losses: ["fusion", "argument-error"],
    fusion: [],
    "argument-error": [],
    record: [],
    "tensor-plan": [],
  },
  "compute/parallel": {
    rank: ["blocks"],
    owned: ["blocks"],
    blocks: ["layout", "tensor-parallel"],
    "tensor-parallel": ["tape"],
    tape: [],
    layout: [],
  },
  "library/checkpoint": {
    saving: ["reading"],
    reading: ["format", "open-storage"],
    "hugging-face": ["format"],
    format: ["storage"],
    "open-storage": ["storage/s3"],
    "storage/s3": ["format"],
    storage: [],
  },
  "tools/planner": {
    "describe-plan": ["suggest", "simulation", "table"],
    "planned-job": ["cost"],
    suggest: ["cost"],
    simulation: ["cost"],
    cost: [],
    table: [],
  },
  "job/events": {
    sinks: ["hub"],
    hub: ["words", "event-kinds"],
    words: ["figures"],
    figures: ["event"],
    "event-kinds": ["event"],
    event: ["kinds"],
    kinds: ["error-report"],
    "error-report": [],
  },
  "actors/shard": {
    shard: ["place-blocks", "shard-step", "frozen-flags"],
    "place-blocks": ["group"],
    "shard-step": ["reduce"],
    reduce: ["group", "update"],
    update: [],
    group: [],
    "frozen-flags": [],
  },
  "actors/trainer": {
    runtime: ["running", "own-actors"],
    running: ["run", "interruption"],
    run: ["settle-job", "rendezvous", "led-launch", "live"],
    "own-actors": ["translate-event", "shared-system"],
    "settle-job": ["stalls"],
    "led-launch": ["plan", "translate-event", "shared-system"],
    stalls: ["recovery"],
    recovery: ["plan"],
    plan: ["resume"],
    resume: ["option-error"],
    interruption: [],
    live: ["plan"],
    rendezvous: [],
    "translate-event": [],
    "shared-system": [],
    "option-error": [],
  },
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
  // Imports from outside src (the addon, package.json) are of no room; files that do not exist are examples in comments.
  const imports = sourceFiles()
    .flatMap(importsOf)
    .filter(({ target }) => target !== "" && !target.startsWith("..") && existsSync(join(source, target)));

  it("knows every room", () => {
    const rooms = new Set(sourceFiles().map((file) => roomOf(relative(source, file))));
    expect([...rooms].filter((room) => room !== "entries" && !(room in arrows))).toEqual([]);
  });

  it("makes no circle of rooms", () => {
    const circles = (map: typeof arrows) =>
      Object.keys(map).filter((room) => mayImport(room, map, new Set()).has(room));
    expect([...circles(wings), ...circles(arrows)]).toEqual([]);
  });

  it("points down only between wings, of which there are few", () => {
    const folders = readdirSync(source).toSorted();
    expect(folders).toEqual(Object.keys(wings).toSorted());
    expect(folders.length).toBeLessThanOrEqual(8);
    const wrong = imports
      .map(({ file, target }) => ({ file, target, from: wingOf(file), to: wingOf(target) }))
      .filter(({ from, to }) => from !== to && !mayImport(from, wings, new Set()).has(to))
      .map(({ file, target }) => `${file} may not import ${target}`);
    expect(wrong).toEqual([]);
  });

  it("points down only", () => {
    const wrong = imports
      .filter(({ from, to }) => from !== "entries" && from !== to && !mayImport(from).has(to))
      .map(({ file, to, target }) => `${file} may not import ${to}/ (${target})`);
    expect(wrong).toEqual([]);
  });

  it.each(Object.entries(within))("points down only between the folders of %s", (room, folders) => {
    const wrong = imports
      .filter(({ from, to }) => from === room && to === room)
      .map(({ file, target }) => ({
        file,
        from: roomOf(relative(room, file), folders),
        to: roomOf(relative(room, target), folders),
      }))
      .filter(({ from, to }) => from !== "index" && from !== to && !mayImport(from, folders).has(to))
      .map(({ file, to }) => `${file} may not import ${room}/${to}`);
    expect(wrong).toEqual([]);
  });

  it("makes no circle of files, types included", () => {
    expect(circlesAmong(imports)).toEqual([]);
  });

  it("keeps the protocols free of behaviour: what they import is types", () => {
    const values = sourceFiles()
      .filter((path) => roomOf(relative(source, path)) === "actors/protocols" && !path.endsWith("index.ts"))
      .filter((path) => /^import (?!type )/m.test(readFileSync(path, "utf8")));
    expect(values.map((path) => relative(source, path))).toEqual([]);
  });

  it("enters a room by its index.ts, where it is more than one file", () => {
    const wrong = imports
      .filter(
        ({ from, to, target }) => from !== to && target !== `${to}.ts` && target !== join(to, "index.ts"),
      )
      .map(({ file, target }) => `${file} imports ${target}, not that room's index.ts`);
    expect(wrong).toEqual([]);
  });

  it("keeps the addon behind compute/tensor/native.ts", () => {
    const loaders = sourceFiles().filter((file) =>
      /\bcreateRequire\b|process\.dlopen/.test(readFileSync(file, "utf8")),
    );
    expect(loaders.map((file) => relative(source, file))).toEqual([join("compute", "tensor", "native.ts")]);
  });
});

describe("the addon's kernels", () => {
  const kernels = fileURLToPath(new URL("../native/kernels", import.meta.url));
  const textsOf = (folder: string) =>
    readdirSync(join(kernels, folder)).map((file) => ({
      file,
      text: readFileSync(join(kernels, folder, file), "utf8"),
    }));
  const namesIn = (folder: string, macro: string) =>
    textsOf(folder)
      .flatMap(({ text }) => [...text.matchAll(new RegExp(`\\b${macro}\\((\\w+),`, "g"))])
      .map(([, name = ""]) => name);

  it("of the CPU know nothing of CUDA", () => {
    const wrong = textsOf("cpu").filter(({ text }) => /HAVE_CUDA|#include "kernels\/cuda/.test(text));
    expect(wrong.map(({ file }) => file)).toEqual([]);
  });

  it("have the same names on the CPU and for CUDA", () => {
    const cpu = namesIn("cpu", "TROUPE_KERNEL");
    expect(cpu.length).toBeGreaterThan(25);
    expect(cpu.toSorted()).toEqual([...new Set(namesIn("cuda", "TROUPE_CUDA_KERNEL"))].toSorted());
  });
});

function sourceFiles(): string[] {
  return readdirSync(source, { recursive: true, encoding: "utf8" })
    .filter((file) => /(?<!\.d)\.ts$/.test(file))
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

/** `compute/nn/layers/linear.ts` belongs to `compute/nn`, `actors/shard.ts`, beside a folder of its name, to `actors`. */
function roomOf(path: string, rooms = arrows): string {
  const name = path.replace(/\.ts$/, "");
  const isBeside = rooms === arrows && existsSync(join(source, name));
  const parts = (isBeside ? dirname(path) : name).split(sep);
  const folders = parts.map((_, index) => parts.slice(0, parts.length - index).join("/"));
  return folders.find((folder) => folder in rooms) ?? parts[0] ?? "";
}

/** The files of each circle, by name: sets of which each can be reached from each (Tarjan 1972). */
function circlesAmong(imports: readonly Import[]): string[][] {
  const next = Map.groupBy(imports, ({ file }) => file);
  const order = new Map<string, number>();
  const lowest = new Map<string, number>();
  const path: string[] = [];
  const circles: string[][] = [];
  const visit = (file: string) => {
    order.set(file, order.size);
    lowest.set(file, order.get(file) as number);
    path.push(file);
    for (const { target } of next.get(file) ?? []) {
      if (!order.has(target)) visit(target);
      else if (!path.includes(target)) continue;
      lowest.set(file, Math.min(lowest.get(file) as number, lowest.get(target) as number));
    }
    if (lowest.get(file) !== order.get(file)) return;
    const circle = path.splice(path.indexOf(file));
    if (circle.length > 1) circles.push(circle.toSorted());
  };
  for (const file of next.keys()) if (!order.has(file)) visit(file);
  return circles;
}

function wingOf(path: string): string {
  return path.split(sep)[0] ?? "";
}

/** All that arrows lead to from a room. */
function mayImport(room: string, rooms = arrows, reached = new Set(common)): Set<string> {
  const visit = (from: string) => {
    for (const next of rooms[from] ?? []) {
      if (!reached.has(next)) visit(next);
      reached.add(next);
    }
  };
  visit(room);
  return reached;
}
