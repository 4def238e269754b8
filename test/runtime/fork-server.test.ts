import { existsSync, readFileSync, readlinkSync } from "node:fs";
import { expect, onTestFinished, test, vi } from "vitest";
import { forkSupport } from "../../src/compute/tensor/index.ts";
import type { ActorRef } from "../../src/runtime/index.ts";
import { startedBy } from "../fixtures/started-by.ts";
import type { EchoProtocol } from "./actors/echo.ts";
import type { MortalProtocol } from "./actors/mortal.ts";
import { actorModule, startSystem } from "./start-system.ts";

const deadlineMs = 20_000;
const preload = new URL("./actors/preload.ts", import.meta.url);
const place = { placement: "process", process: "one" } as const;

/** The process that started this one; 0 if it has ended. */
function parentOf(pid: number): number {
  if (!existsSync(`/proc/${pid}/status`)) return 0;
  return Number(/^PPid:\s*(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1]);
}

/** Starts an actor in a process, and asks for the process's id. */
async function startMortal(system: ReturnType<typeof startSystem>["system"]) {
  const mortal = await system.spawn<MortalProtocol>({
    name: "mortal",
    module: actorModule("mortal"),
    ...place,
  });
  return { mortal, pid: await mortal.ask("pid", null, { deadlineMs }) };
}

// The library is Linux's, and no GPU has shown that a fork computes on it.
test.skipIf(forkSupport() === undefined)(
  "a process is a fork of one that has loaded libtorch, has the environment and folder of its start, and reports how it ended",
  async () => {
    const folder = process.cwd();
    onTestFinished(() => process.chdir(folder));
    onTestFinished(() => void vi.unstubAllEnvs());
    const { system, log } = startSystem({ preload });
    const { mortal, pid } = await startMortal(system);
    const server = parentOf(pid);
    expect(server).not.toBe(process.pid);
    expect(parentOf(server)).toBe(process.pid);
    expect(readFileSync(`/proc/${server}/maps`, "utf8")).toContain("libtorch_cpu");

    system.watch(mortal, () => {});
    mortal.tell("die", { signal: "SIGSEGV", words: "last words" });
    const failed = await log.until((event) => event.kind === "actor.failed");
    expect(failed).toMatchObject({ cause: { code: "SIGSEGV" } });

    vi.stubEnv("TROUPE_SET_LATER", "1");
    process.chdir("/");
    const echo: ActorRef<EchoProtocol> = await system.spawn<EchoProtocol>({
      name: "echo",
      module: actorModule("echo"),
      ...place,
    });
    const names = await echo.ask("environmentNames", null, { deadlineMs });
    expect(names).toContain("TROUPE_SET_LATER");
    expect(names.filter((name) => ["LD_PRELOAD", "TROUPE_FORK_SERVER"].includes(name))).toEqual([]);

    const [later] = startedBy(process.pid);
    expect(readlinkSync(`/proc/${later}/cwd`)).toBe("/");

    await system.stop();
    expect(parentOf(server)).toBe(0);
  },
);

test.skipIf(forkSupport() === undefined)(
  "where the server ends, its processes end with it, and the next is started by itself",
  async () => {
    const { system, log } = startSystem({ preload });
    const { mortal, pid } = await startMortal(system);
    system.watch(mortal, () => {});
    process.kill(parentOf(pid), "SIGKILL");
    expect(await log.until((event) => event.kind === "actor.failed")).toMatchObject({
      cause: { code: "SIGKILL" },
    });
    expect(parentOf((await startMortal(system)).pid)).toBe(process.pid);
  },
);

test.skipIf(forkSupport() === undefined)(
  "a process that has ended may be killed before the server's word of its end is heard",
  async () => {
    const { system, log } = startSystem({ preload });
    const { mortal, pid } = await startMortal(system);
    process.kill(pid, "SIGKILL");
    // Without a turn of the event loop, in which the word would come.
    while (existsSync(`/proc/${pid}`));
    expect(() => system.killProcessOf(mortal)).not.toThrow();
    expect(await log.until((event) => event.kind === "actor.failed")).toMatchObject({
      cause: { code: "SIGKILL" },
    });
  },
);

test.each(["library", "addon"])(
  "without the server's %s, processes are started by themselves",
  async (what) => {
    const { system } = startSystem({ preload: new URL(`./actors/without-file.ts?${what}`, import.meta.url) });
    expect(parentOf((await startMortal(system)).pid)).toBe(process.pid);
  },
);
