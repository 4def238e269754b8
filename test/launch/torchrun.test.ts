import { spawnSync } from "node:child_process";
import { afterAll, describe, expect, it } from "vitest";
import type { TroupeEvent } from "../../src/entries/index.ts";
import { nativeInfo } from "../../src/entries/tensor.ts";
import { lossesOf, Workspace } from "../fixtures/run-tiny.ts";
import { childrenOf } from "../fixtures/started-by.ts";
import { freePort, LaunchedRun } from "./launched-hosts.ts";

// A python that has torch, and with it torchrun. Skipped where the environment names none.
const python = process.env.TROUPE_PYTHON ?? "";
const hasTorchrun =
  python !== "" &&
  spawnSync(python, ["-c", "import torch.distributed.run"]).status === 0 &&
  nativeInfo().gloo;
if (!hasTorchrun)
  process.stderr.write(
    "test/launch/torchrun: SKIPPED, TROUPE_PYTHON names no python with torch's torchrun\n",
  );

describe.skipIf(!hasTorchrun)("torchrun, PyTorch's own", () => {
  const workspace = new Workspace();
  afterAll(() => workspace[Symbol.dispose]());

  function agent(
    port: number,
    nodes: string,
    args: readonly string[],
    env: Readonly<Record<string, string>> = {},
    processes = 1,
  ) {
    const command = [
      python,
      ...[
        "-m",
        "torch.distributed.run",
        `--nnodes=${nodes}`,
        `--nproc-per-node=${processes}`,
        "--max-restarts=3",
      ],
      ...["--rdzv-backend=c10d", `--rdzv-endpoint=localhost:${port}`, "--rdzv-id=test"],
      ...["--rdzv-conf=last_call_timeout=1", "--monitor-interval=0.5", "--no-python", process.execPath],
    ];
    const all = ["--threads-per-rank", "1", "--no-warm-standby", "--ranks", "2", ...args];
    return new LaunchedRun(workspace, env, all, command);
  }

  it("starts a run on two nodes, which joins through its agent's store and trains as one host does", async () => {
    const port = await freePort();
    using first = agent(port, "2", ["--steps", "4"]);
    using second = agent(port, "2", ["--steps", "4"]);
    expect([await first.ended, await second.ended], first.err + second.err).toEqual([0, 0]);
    const head = first.events.length > 0 ? first : second;
    expect(head.events.find(({ kind }) => kind === "host.joined")).toMatchObject({ index: 1 });
    expect(head.losses).toEqual(await lossesOf(workspace, { ranks: 2, steps: 4 }));
  });

  it("starts two processes on a node, of which one starts the ranks of both", async () => {
    using both = agent(await freePort(), "1", ["--steps", "4"], {}, 2);
    expect(await both.ended, both.err).toBe(0);
    expect(both.events.filter(({ kind }) => kind === "run.started")).toMatchObject([{ numRanks: 2 }]);
    expect(both.events.some(({ kind }) => kind === "host.joined")).toBe(false);
    expect(both.losses).toEqual(await lossesOf(workspace, { ranks: 2, steps: 4 }));
  });

  it("brings a node in the place of one that is killed, with which the run goes on to the same losses", async () => {
    const port = await freePort();
    const env = { TORCH_DISABLE_SHARE_RDZV_TCP_STORE: "1" };
    const saving = [
      "--checkpoint",
      workspace.path("replaced"),
      "--checkpoint-every",
      "5",
      "--resume",
      "auto",
    ];
    // Slow steps, so that one host need not repeat thousands of them.
    const args = ["--steps", "100000", "--slow-reduce", "40", ...saving];
    const started = [agent(port, "1:2", args, env)];
    using first = started[0] as LaunchedRun;
    await first.until((event) => event.kind === "step.finished");
    using second = agent(port, "1:2", args, env);
    started.push(second);
    const joined = (run: LaunchedRun) => run.until(({ kind }) => kind === "host.joined");
    await Promise.race(started.map(joined));
    const before = first.events.length;
    const [program] = childrenOf(second.child.pid as number);
    for (const pid of [second.child.pid, program]) process.kill(pid as number, "SIGKILL");
    using third = agent(port, "1:2", args, env);
    const later = (run: LaunchedRun) =>
      run.until(
        (event) => event.kind === "host.joined" && (run !== first || run.events.indexOf(event) >= before),
      );
    await Promise.race([first, third].map(later));
    const head = third.events.some(({ kind }) => kind === "host.joined") ? third : first;
    const place = head.events.findLastIndex(({ kind }) => kind === "host.joined");
    await head.until((event) => event.kind === "step.finished" && head.events.indexOf(event) > place);
    for (const run of [third, first]) run.child.kill("SIGTERM");
    await Promise.all([first.ended, third.ended]);
    const losses: number[] = [];
    for (const { events } of [first, second, third])
      for (const event of events) if (event.kind === "step.finished") losses[event.step - 1] = event.lossNats;
    expect(losses).toEqual(await lossesOf(workspace, { ranks: 2, steps: losses.length }));
  });

  it("adds a node to a run of one, which saves and continues on both with the same losses", async () => {
    const port = await freePort();
    // With a shared store torch 2.13 tells the second no address.
    const env = { TORCH_DISABLE_SHARE_RDZV_TCP_STORE: "1" };
    const args = ["--steps", "100000", "--checkpoint", workspace.path("elastic"), "--resume", "auto"];
    using first = agent(port, "1:2", args, env);
    await first.until((event) => event.kind === "step.finished");
    using second = agent(port, "1:2", args, env);
    // A second that is slow to come to the rendezvous finds that the first has resumed alone, and has it start once more.
    await Promise.race([first, second].map((run) => run.until(({ kind }) => kind === "host.joined")));
    const head = first.events.some(({ kind }) => kind === "host.joined") ? first : second;
    const joined = head.events.findIndex(({ kind }) => kind === "host.joined");
    const after = (kind: string) => (event: TroupeEvent) =>
      event.kind === kind && head.events.indexOf(event) > joined;
    await head.until(after("run.resumed"));
    await head.until(after("step.finished"));
    second.child.kill("SIGTERM");
    first.child.kill("SIGTERM");
    await Promise.all([first.ended, second.ended]);
    const losses: number[] = [];
    for (const { events } of [first, second])
      for (const event of events) if (event.kind === "step.finished") losses[event.step - 1] = event.lossNats;
    expect(losses).toEqual(await lossesOf(workspace, { ranks: 2, steps: losses.length }));
  });
});
