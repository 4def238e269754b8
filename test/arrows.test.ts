import { existsSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join, relative, resolve, sep } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";

const source = fileURLToPath(new URL("../src", import.meta.url));

/**
 * Left may import right, and what right may import. Every room may also import `events`, `errors` and `untrusted`. A room is the
 * longest of these paths that a file lies in.
 */
const arrows: Readonly<Record<string, readonly string[]>> = {
  cli: ["trainer", "planner", "convert", "service", "sinks", "rapidformer", "hub", "bench", "make-folder"],
  bench: ["trainer"],
  rapidformer: ["tasks"],
  hub: ["checkpoint"],
  tasks: ["job", "models", "metrics"],
  trainer: ["actors", "planner", "dashboard", "config", "launch"],
  launch: ["runtime", "collectives"],
  config: ["parallel", "anomalies", "nearest-path"],
  dashboard: ["access", "nearest-path"],
  actors: ["engine/rank", "engine/shard", "engine/conductor", "engine/relay"],
  "engine/conductor": ["job", "protocols", "inspect", "state/saving"],
  "engine/relay": ["protocols"],
  "engine/rank": ["job", "protocols", "inspect", "state/saving", "models"],
  "engine/shard": ["inspect", "state/store"],
  "state/store": ["state/initial", "state/paging", "inspect"],
  "state/initial": ["state/saving"],
  "state/saving": ["protocols", "checkpoint"],
  inspect: ["state/paging"],
  "state/paging": ["protocols"],
  protocols: ["job", "anomalies", "runtime", "parallel", "offload", "checkpoint"],
  job: ["module-texts", "parallel", "optim", "data", "deltas"],
  deltas: ["models", "checkpoint"],
  planner: ["parallel", "models", "sinks"],
  convert: ["checkpoint", "models"],
  service: ["checkpoint", "runtime", "access"],
  parallel: ["nn", "optim", "collectives"],
  models: ["nn"],
  nn: ["tensor", "definitions"],
  optim: ["tensor", "definitions", "batch-ramp"],
  definitions: ["user-call"],
  data: ["user-call", "tensor", "make-folder", "batch-ramp", "nearest-path"],
  checkpoint: ["tensor", "process-mark", "make-folder", "nearest-path"],
  offload: ["tensor"],
  runtime: ["user-call", "process-mark", "relative-imports", "ownership", "module-texts", "access"],
  collectives: ["tensor"],
  tensor: ["ownership"],
  sinks: ["access"],
  access: ["make-folder", "ownership"],
  anomalies: [],
  metrics: [],
  events: ["make-folder"],
  errors: [],
  untrusted: [],
  "batch-ramp": [],
  "process-mark": [],
  "user-call": [],
  "relative-imports": [],
  "module-texts": [],
  "make-folder": [],
  ownership: [],
  "nearest-path": [],
  "node-version": [],
};

/** The same between the folders of a room that is entered by one index.ts; a file that lies in no folder is its own. */
const within: Readonly<Record<string, typeof arrows>> = {
  runtime: {
    "actor-system": ["supervision", "timeout-ladder"],
    supervision: ["system"],
    system: ["hosting"],
    hosting: ["actor", "transport/unix", "transport/tcp"],
    actor: ["messaging", "inspection"],
    messaging: ["transport", "clock"],
    "transport/unix": ["transport/hub"],
    "transport/tcp": ["transport/hub"],
    "transport/hub": ["transport"],
    transport: ["mailbox"],
    mailbox: ["protocol"],
    inspection: ["protocol", "clock"],
    protocol: [],
    clock: [],
    "timeout-ladder": [],
  },
  nn: {
    moe: ["layers"],
    attention: ["layers"],
    layers: ["module", "losses"],
    module: ["random"],
    random: [],
    losses: ["fusion"],
    fusion: [],
    record: [],
    "tensor-plan": [],
  },
  parallel: {
    rank: ["blocks"],
    shard: ["blocks"],
    blocks: ["layout", "tensor-parallel"],
    "tensor-parallel": ["tape"],
    tape: [],
    layout: [],
  },
  checkpoint: {
    saving: ["reading"],
    reading: ["format", "open-storage"],
    "hugging-face": ["format"],
    format: ["storage"],
    "open-storage": ["storage/s3"],
    "storage/s3": ["storage"],
    storage: [],
  },
  planner: {
    "describe-plan": ["suggest", "simulation", "table"],
    suggest: ["cost"],
    simulation: ["cost"],
    cost: [],
    table: [],
  },
  events: {
    sinks: ["hub"],
    hub: ["words", "event-kinds"],
    words: ["event"],
    "event-kinds": ["event"],
    event: ["kinds"],
    kinds: ["error-report"],
    "error-report": [],
  },
  trainer: {
    runtime: ["run", "interruption"],
    run: ["stalls", "rendezvous", "run-hosts", "translate-event"],
    "run-hosts": ["plan"],
    stalls: ["recovery"],
    recovery: ["plan"],
    plan: ["resume"],
    resume: ["option-error"],
    interruption: [],
    rendezvous: [],
    "translate-event": [],
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
  // What lies outside src (the addon, the package's own description) is no room; what is not there is an example in a comment.
  const imports = sourceFiles()
    .flatMap(importsOf)
    .filter(({ target }) => !target.startsWith("..") && existsSync(join(source, target)));

  it("knows every room", () => {
    const rooms = new Set(sourceFiles().map((file) => roomOf(relative(source, file))));
    expect([...rooms].filter((room) => room !== "index" && !(room in arrows))).toEqual([]);
  });

  it("makes no circle of rooms", () => {
    const rooms = Object.keys(arrows).filter((room) => !["events", "errors", "untrusted"].includes(room));
    expect(rooms.filter((room) => mayImport(room).has(room))).toEqual([]);
  });

  it("points down only", () => {
    const wrong = imports
      .filter(({ from, to }) => from !== "index" && from !== to && !mayImport(from).has(to))
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
      .filter((path) => roomOf(relative(source, path)) === "protocols" && !path.endsWith("index.ts"))
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

  it("keeps the addon behind tensor/native.ts", () => {
    const loaders = sourceFiles().filter((file) =>
      /\bcreateRequire\b|process\.dlopen/.test(readFileSync(file, "utf8")),
    );
    expect(loaders.map((file) => relative(source, file))).toEqual([join("tensor", "native.ts")]);
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

/** `nn/linear.ts` belongs to `nn`, `engine/rank/batch-source.ts` to `engine/rank`, `errors.ts` to `errors`. */
function roomOf(path: string, rooms = arrows): string {
  const parts = path.replace(/\.ts$/, "").split(sep);
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

/** All that arrows lead to from a room. */
function mayImport(room: string, rooms = arrows): Set<string> {
  const reached = new Set(["events", "errors", "untrusted"]);
  const visit = (from: string) => {
    for (const next of rooms[from] ?? []) {
      if (!reached.has(next)) visit(next);
      reached.add(next);
    }
  };
  visit(room);
  return reached;
}
