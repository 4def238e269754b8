import { spawn } from "node:child_process";
import { expect, test } from "vitest";
import type { BlockerProtocol } from "./actors/blocker.ts";
import type { EchoProtocol } from "./actors/echo.ts";
import { actorModule, inProcesses, startSystem } from "./start-system.ts";

const deadlineMs = 20_000;

/** Runs a program of these tests and resolves with its exit code and what it wrote to stderr. */
function runProgram(name: string): Promise<{ exitCode: number | null; stderr: string }> {
  const program = spawn(process.execPath, [new URL(`./programs/${name}.ts`, import.meta.url).pathname]);
  let stderr = "";
  program.stderr.on("data", (chunk: Buffer) => {
    stderr += chunk.toString();
  });
  return new Promise((resolve) => program.on("exit", (exitCode) => resolve({ exitCode, stderr })));
}

test("DL-15 a failure nobody handles ends the program with its first cause and a code other than 0", async () => {
  const { exitCode, stderr } = await runProgram("unhandled-failure");
  expect(exitCode).toBe(1);
  expect(stderr).toContain("ACTOR_UNHANDLED");
  expect(stderr).toContain("echo#1");
  expect(stderr).toContain("step 12 went wrong");
});

test("DL-15 a failure that was watched or asked for is its hearer's business", async () => {
  const { system, log } = startSystem();
  const watched = await system.spawn<EchoProtocol>({
    name: "watched",
    module: actorModule("echo"),
    placement: "main",
  });
  const heard = new Promise((resolve) => system.watch(watched, resolve));
  watched.tell("fail", "heard");
  await heard;
  const asked = await system.spawn<EchoProtocol>({
    name: "asked",
    module: actorModule("echo"),
    placement: "main",
  });
  const answer = asked.ask("hold", null, { deadlineMs });
  asked.tell("fail", "sent to the asker");
  await expect(answer).rejects.toThrow("sent to the asker");
  expect(log.unhandled).toEqual([]);
});

test("DL-16 the first fault is the first to be reported, whatever it brings down with it", async () => {
  const { system, log } = startSystem();
  // A round starts two processes, where it takes processes.
  const rounds = inProcesses() ? 3 : 10;
  const gaveUp = Promise.withResolvers<string>();
  const supervisor = await system.supervise({
    name: "group",
    strategy: "one_for_all",
    restarts: rounds - 1,
    children: [
      { name: "source", module: actorModule("echo") },
      { name: "dependent", module: actorModule("blocker") },
    ],
    onEscalate: (cause) => gaveUp.resolve(cause.message),
  });
  for (let round = 1; round <= rounds; round++) {
    const source = supervisor.ref<EchoProtocol>("source");
    supervisor.ref<BlockerProtocol>("dependent").tell("hang", { on: source, forAnswer: true });
    await log.until(() => log.emitted.filter((text) => text === "hangs").length === round);
    source.tell("fail", `fault ${round}`);
    if (round < rounds) {
      await log.until(
        (event) =>
          event.kind === "actor.restarted" && event.actor === "dependent" && event.incarnation === round + 1,
      );
    }
  }
  expect(await gaveUp.promise).toBe("fault 1");
  const faults = log.ofKind("actor.failed").filter(({ actor }) => actor === "source");
  expect(faults.map(({ cause }) => cause.message)).toEqual(
    Array.from({ length: rounds }, (_, index) => `fault ${index + 1}`),
  );
  for (const { actor, cause } of log.ofKind("actor.failed")) {
    if (actor === "dependent")
      expect(cause).toMatchObject({
        code: "ACTOR_DOWN",
        cause: { message: expect.stringMatching(/^fault/) },
      });
  }
});
