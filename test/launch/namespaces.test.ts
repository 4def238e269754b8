import { mkdirSync, readdirSync } from "node:fs";
import { afterAll, describe, expect, it } from "vitest";
import type { RuntimeOptions } from "../../src/entries/index.ts";
import { nativeInfo } from "../../src/entries/tensor.ts";
import { joinFolders } from "../../src/library/checkpoint/index.ts";
import { lossesOf, runTiny, Workspace } from "../fixtures/run-tiny.ts";
import { LaunchedRun } from "./launched-hosts.ts";
import { TwoHosts, whyNoNamespaces } from "./namespaces.ts";

const reason = nativeInfo().gloo ? whyNoNamespaces() : "the addon has no Gloo";
// A loud message, so that a skipped test is not taken for a passed one.
if (reason !== undefined)
  process.stderr.write(`test/launch/namespaces: SKIPPED, no hosts can be made here: ${reason}\n`);

describe.skipIf(reason !== undefined)("two hosts, each a network and a memory of its own", () => {
  const workspace = new Workspace();
  afterAll(() => workspace[Symbol.dispose]());

  function start(hosts: TwoHosts, args: readonly string[], own?: string) {
    return ([0, 1] as const).map((rank) => {
      const env = {
        RANK: `${rank}`,
        WORLD_SIZE: "2",
        MASTER_ADDR: hosts.addresses[0] as string,
        MASTER_PORT: "29500",
      };
      const all = ["--threads-per-rank", "1", "--no-warm-standby", ...args];
      return new LaunchedRun(workspace, env, all, hosts.command(rank, process.execPath, own));
    }) as [LaunchedRun, LaunchedRun];
  }

  const layouts: readonly (readonly [string, RuntimeOptions & { readonly ranks: number }])[] = [
    ["replicas at ZeRO 0", { ranks: 2, zero: 0 }],
    ["replicas at ZeRO 1", { ranks: 2, zero: 1 }],
    ["two replicas on each at ZeRO 2", { ranks: 4, zero: 2 }],
    ["replicas at ZeRO 3", { ranks: 2, zero: 3 }],
    ["a layer split within each, stages across", { ranks: 4, tp: 2, pp: 2 }],
  ];

  it.each(layouts)("train to the 17 digits of one host: %s", async (_, options) => {
    using hosts = new TwoHosts();
    const given = Object.entries(options).flatMap(([name, value]) => [`--${name}`, `${value}`]);
    const [head, member] = start(hosts, [...given, "--steps", "4"]);
    using _head = head;
    using _member = member;
    expect([await head.ended, await member.ended], head.err + member.err).toEqual([0, 0]);
    expect(head.events.find(({ kind }) => kind === "host.joined")).toMatchObject({
      index: 1,
      name: "host-b",
    });
    expect(head.losses).toEqual(await lossesOf(workspace, { ...options, steps: 4 }));
  });

  it.each(["head", "ranks"])(
    "save where each has a folder of its own, and go on in any layout as one host does: written by %s",
    async (writers) => {
      using hosts = new TwoHosts();
      const folder = workspace.path(`by-${writers}`);
      for (const each of [folder, `${folder}-b`]) mkdirSync(each);
      const saving = ["--ranks", "2", "--tp", "2", "--steps", "4", "--checkpoint", folder];
      const [head, member] = start(hosts, [...saving, "--checkpoint-writers", writers], folder);
      using _head = head;
      using _member = member;
      expect([await head.ended, await member.ended], head.err + member.err).toEqual([0, 0]);
      const checkpoint = `${folder}/step-000004`;
      const apart = writers === "head" ? [] : ["step-000004"];
      expect(readdirSync(`${folder}-b`)).toEqual(apart);
      const other = ["--ranks", "4", "--tp", "2", "--zero", "1", "--steps", "6", "--resume", checkpoint];
      const [again, second] = start(
        hosts,
        [...other, "--checkpoint", workspace.path(`on-${writers}`)],
        folder,
      );
      using _again = again;
      using _second = second;
      expect([await again.ended, await second.ended], again.err + second.err).toEqual([0, 0]);
      if (writers === "ranks") {
        const { error } = await runTiny(workspace, { ranks: 1, steps: 6, resume: checkpoint });
        expect(error).toMatchObject({
          code: "CHECKPOINT_ELSEWHERE",
          message: expect.stringContaining("host-b"),
        });
        expect(await joinFolders(checkpoint, [`${folder}-b`])).toHaveLength(2);
      }
      const alone = { ranks: 4, tp: 2, zero: 1, steps: 6, resume: checkpoint } as const;
      const { losses, error } = await runTiny(workspace, alone);
      expect(error).toBeUndefined();
      expect(losses.slice(4)).toHaveLength(2);
      expect(again.losses.slice(4)).toEqual(losses.slice(4));
    },
  );

  it("notice a link that is cut, which closes no connection, name the host, and go on without it to the same losses", async () => {
    using hosts = new TwoHosts();
    const args = ["--ranks", "2", "--zero", "3", "--steps", "12", "--checkpoint-in-memory-every", "2"];
    const [head, member] = start(hosts, args);
    using _head = head;
    using _member = member;
    await head.until((event) => event.kind === "step.finished" && event.step === 4);
    hosts.cut();
    expect([await head.ended, await member.ended], head.err + member.err).toEqual([0, 1]);
    expect(head.events.filter(({ kind }) => kind === "host.failed")).toMatchObject([
      { index: 1, name: "host-b", error: { code: "HOST_LOST" } },
    ]);
    expect(member.err).toMatch(/expected host 0, which leads the run, to stay/);
    expect(head.losses).toEqual(await lossesOf(workspace, { ranks: 2, zero: 3, steps: 12 }));
  });
});
