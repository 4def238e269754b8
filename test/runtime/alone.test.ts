import { execFileSync } from "node:child_process";
import {
  cpSync,
  globSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, it } from "vitest";

const root = fileURLToPath(new URL("../..", import.meta.url));
const folder = mkdtempSync(join(tmpdir(), "troupe-kernel-"));
/** All that the kernel is made of: two wings, and the file by which set-up and product decide on folders. */
const parts = ["src/runtime", "src/errors", "scripts/setup/ownership.mjs"];

const counter = `
import { type ActorRef, defineActor } from "../src/runtime/index.ts";

export type Counter = { add: { in: number; out: number }; fall: { in: string } };

export default defineActor<Counter>({
  start() {
    let sum = 0;
    return {
      handlers: {
        add: (value) => (sum += value),
        fall(reason) {
          throw new Error(reason);
        },
      },
    };
  },
});
export type Ref = ActorRef<Counter>;
`;

const program = `
import { once, EventEmitter } from "node:events";
import { ActorSystem } from "../src/runtime/index.ts";
import type { Counter } from "./counter.ts";

const restarts = new EventEmitter();
const system = new ActorSystem({ name: "alone" });
const { ref } = await system.supervise({
  name: "counters",
  strategy: "one_for_one",
  children: [{ name: "counter", module: new URL("./counter.ts", import.meta.url), placement: "thread" }],
  onRestart: () => restarts.emit("restart"),
}).then((supervisor) => ({ ref: supervisor.ref<Counter>("counter") }));
const add = (value: number) => ref.ask("add", value, { deadlineMs: 60_000 });
console.log(await add(2), await add(3));
const restarted = once(restarts, "restart");
ref.tell("fall", "on purpose");
await restarted;
console.log(await add(4));
await system.stop({ deadlineMs: 60_000 });
`;

beforeAll(async () => {
  for (const part of parts) cpSync(join(root, part), join(folder, part), { recursive: true });
  symlinkSync(join(root, "node_modules"), join(folder, "node_modules"));
  mkdirSync(join(folder, "program"));
  writeFileSync(join(folder, "package.json"), '{ "type": "module" }');
  writeFileSync(join(folder, "program", "counter.ts"), counter);
  writeFileSync(join(folder, "program", "main.ts"), program);
});
afterAll(() => rmSync(folder, { recursive: true }));

describe("the actor kernel, taken out of the project", () => {
  it("imports errors, Node and one package", () => {
    const sources = globSync("src/{runtime,errors}/**/*.ts", { cwd: folder });
    const imported = sources.flatMap((path) => [
      ...readFileSync(join(folder, path), "utf8").matchAll(/\bfrom "([^."][^"]*)"/g),
    ]);
    const packages = imported.map(([, name = ""]) => name).filter((name) => !name.startsWith("node:"));
    expect(new Set(packages)).toEqual(new Set(["msgpackr", "msgpackr/pack"]));
  });

  it("compiles", () => {
    const { compilerOptions } = JSON.parse(readFileSync(join(root, "tsconfig.json"), "utf8"));
    const include = ["src", "program"];
    writeFileSync(join(folder, "tsconfig.json"), JSON.stringify({ compilerOptions, include }));
    execFileSync(process.execPath, [join(root, "node_modules/typescript/bin/tsc"), "-p", folder]);
  });

  it("starts an actor on a thread, restarts it when it fails, and stops", () => {
    const { JOINED_SOURCES: _, NODE_OPTIONS: __, ...env } = process.env;
    const printed = execFileSync(process.execPath, [join(folder, "program", "main.ts")], {
      encoding: "utf8",
      env,
    });
    expect(printed).toBe("2 5\n4\n");
  });
});
