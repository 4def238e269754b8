import { spawnSync } from "node:child_process";
import { afterAll, describe, expect, it } from "vitest";
import { nativeInfo } from "../../src/index.ts";
import { lossesOf, Workspace } from "../fixtures/run-tiny.ts";
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
  ) {
    const command = [
      python,
      ...["-m", "torch.distributed.run", `--nnodes=${nodes}`, "--nproc-per-node=1", "--max-restarts=3"],
      ...["--rdzv-backend=c10d", `--rdzv-endpoint=localhost:${port}`, "--rdzv-id=test"],
      ...["--rdzv-conf=last_call_timeout=1", "--monitor-interval=0.5", "--no-python", process.execPath],
    ];
    const all = ["--threads-per-rank", "1", "--no-warm-standby", "--ranks", "2", ...args];
    return new LaunchedRun(workspace, env, all, command);
  }

  it("starts a run on two nodes, which meets in its agent's store and trains as one host does", async () => {
    const port = await freePort();
    using first = agent(port, "2", ["--steps", "4"]);
    using second = agent(port, "2", ["--steps", "4"]);
    expect([await first.ended, await second.ended], first.err + second.err).toEqual([0, 0]);
    const head = first.events.length > 0 ? first : second;
    expect(head.events.find(({ kind }) => kind === "host.joined")).toMatchObject({ index: 1 });
    expect(head.losses).toEqual(await lossesOf(workspace, { ranks: 2, steps: 4 }));
  });

  it("brings a node to a run of one, which saves and goes on with both to the same losses", async () => {
    const port = await freePort();
    // With a shared store torch 2.13 tells the second no address.
    const env = { TORCH_DISABLE_SHARE_RDZV_TCP_STORE: "1" };
    const args = ["--steps", "100000", "--checkpoint", workspace.path("elastic"), "--resume", "auto"];
    using first = agent(port, "1:2", args, env);
    await first.until((event) => event.kind === "step.finished");
    using second = agent(port, "1:2", args, env);
    await Promise.race([first, second].map((run) => run.until(({ kind }) => kind === "run.resumed")));
    const head = first.events.some(({ kind }) => kind === "run.resumed") ? first : second;
    const resumed = head.events.findIndex(({ kind }) => kind === "run.resumed");
    await head.until((event) => event.kind === "step.finished" && head.events.indexOf(event) > resumed + 3);
    expect(head.events.slice(0, resumed).some(({ kind }) => kind === "host.joined")).toBe(true);
    second.child.kill("SIGTERM");
    first.child.kill("SIGTERM");
    await Promise.all([first.ended, second.ended]);
    const losses: number[] = [];
    for (const { events } of [first, second])
      for (const event of events) if (event.kind === "step.finished") losses[event.step - 1] = event.lossNats;
    expect(losses).toEqual(await lossesOf(workspace, { ranks: 2, steps: losses.length }));
  });
});
