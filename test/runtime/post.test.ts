import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import type { ActorRef, ActorSystem } from "../../src/runtime/index.ts";
import type { EchoProtocol } from "./actors/echo.ts";
import { actorModule, moveThreadsToHosts, startSystem } from "./start-system.ts";

// hosts.test.ts shows that messages through a host's agent keep the promises of docs/internals/delivery.md.
moveThreadsToHosts();

const deadlineMs = 60_000;
const established = "01";

/** Actors in processes of their own, every other on the host that has joined. */
function spawnEchoes(system: ActorSystem, from: number, count: number): Promise<ActorRef<EchoProtocol>[]> {
  const names = Array.from({ length: count }, (_, index) => `echo-${from + index}`);
  return Promise.all(names.map((name) => system.spawn<EchoProtocol>({ name, module: actorModule("echo") })));
}

/** Calls that a door of this machine has taken and that are not over. */
function callsAt(port: number): number {
  const ofPort = new RegExp(
    `^ *\\d+: 0100007F:${port.toString(16).toUpperCase().padStart(4, "0")} \\S+ ${established} `,
  );
  return readFileSync("/proc/net/tcp", "utf8")
    .split("\n")
    .filter((line) => ofPort.test(line)).length;
}

test("a host has one connection with its head, however many processes live there", async () => {
  const { system } = startSystem();
  await spawnEchoes(system, 0, 2);
  const [, port] = JSON.parse((await system.invite()).address) as [string, number];
  expect(callsAt(port)).toBe(1 + 1);
  const more = await spawnEchoes(system, 2, 4);
  expect(callsAt(port)).toBe(3 + 1);
  const answers = await Promise.all(more.map((echo) => echo.ask("echo", "heard", { deadlineMs })));
  expect(answers).toEqual(Array(4).fill("heard"));
});

test("a hanging process of another host is ended, and other processes there go on", async () => {
  const { system, log } = startSystem();
  const echoes = await spawnEchoes(system, 0, 4);
  const [, , , other] = echoes as [unknown, unknown, unknown, ActorRef<EchoProtocol>];
  const { pid } = system.inspect().find(({ actor }) => actor === "echo-1") ?? {};
  process.kill(pid as number, "SIGSTOP");
  const end = await log.until((event) => event.kind === "actor.failed" && event.actor === "echo-1");
  expect(end).toMatchObject({ cause: { code: "PEER_SILENT" } });
  expect(() => process.kill(pid as number, 0)).toThrow("ESRCH");
  expect(await other.ask("echo", "heard", { deadlineMs })).toBe("heard");
});
