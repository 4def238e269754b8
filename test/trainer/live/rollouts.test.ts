import { afterAll, expect, it, vi } from "vitest";
import type job from "../../../examples/grpo/job.ts";
import { liveRefs } from "../../../src/compute/tensor/index.ts";
import { Runtime, type RuntimeOptions, tensor } from "../../../src/entries/index.ts";
import { groupAdvantages, rollouts, tokenWeights } from "../../../src/entries/objectives.ts";
import { patience } from "../../fixtures/patience.ts";
import { Workspace } from "../../fixtures/run-tiny.ts";
import type { SortingJudge } from "../../fixtures/sorting-judge.ts";

const workspace = new Workspace();
afterAll(() => workspace[Symbol.dispose]());

const [rounds, samples] = [6, 4];
const prompts = [3, 141, 592, 653].map((n) => [...`${n}`.padStart(3, "0"), 10].map(Number));

/** GRPO with a pool of judges in processes. @param strike - ends what it likes, before a round is trained on */
async function train(
  layout: RuntimeOptions,
  staleness: number,
  judgeEnds = false,
  strike: (round: number, runtime: Runtime) => void = () => {},
) {
  await using runtime = await Runtime.spawn({ threadsPerRank: 1, warmStandby: false, seed: 3, ...layout });
  const once = workspace.path(`judge of ${layout.zero}, ${staleness}`);
  const judges = await runtime.actors.pool<SortingJudge, { endsAt: number; once: string }>({
    name: "judges",
    module: new URL("../../fixtures/sorting-judge.ts", import.meta.url),
    placement: "process",
    size: 2,
    restarts: 3,
    withinMs: 60_000,
    init: () => ({ endsAt: judgeEnds ? 2 : -1, once }),
  });
  const url = new URL("../../../examples/grpo/job.ts", import.meta.url);
  await using policy = await runtime.open<typeof job>(url);
  const seen: string[] = [];
  const losses: number[] = [];
  runtime.on("step.finished", ({ step, lossNats }) => {
    losses[step - 1] = lossNats;
  });
  let numRestored = 0;
  runtime.on("run.restored", () => {
    numRestored += 1;
  });
  for await (const rollout of rollouts({
    rounds,
    staleness,
    write: async (round) => {
      const written = await policy.generate(prompts, { samples, maxNewTokens: 3, seed: round });
      return written.map(({ sequence }) => sequence);
    },
    judge: (texts, round) => judges.ask("mark", { texts, round }, { deadlineMs: 60_000 }),
  })) {
    const { round, texts, marks } = rollout;
    seen.push(`${round}: ${texts.join(" ")}`);
    strike(round, runtime);
    const rewards = tensor(marks);
    const answers = tensor(texts.map((text) => text.map((_, place) => Number(place > 3))));
    const weights = tokenWeights(answers, "sequence");
    const tokens = tensor(texts, { dtype: "int64" });
    void policy.accumulate("loss", {
      tokens,
      weights,
      rewards,
      advantages: groupAdvantages(rewards, samples),
    });
    void policy.step();
  }
  const parameters = Object.entries(await policy.parameters()).map(([name, value]) => ({
    name,
    values: [...(value.toTypedArray() as Float32Array)],
  }));
  await policy.close();
  return { seen, losses, parameters, numRestored };
}

const kept = { checkpoint: { inMemoryEverySteps: 2 } };

it("with a staleness of 0 GRPO has the same bits on 2 ranks at every ZeRO level, after ranks and judges died", async () => {
  const calm = await train({ ranks: 2, zero: 0, ...kept }, 0);
  expect(calm.losses).toHaveLength(rounds);
  const struck = await train(
    { ranks: 2, zero: 3, placement: "process", ...kept },
    0,
    true,
    (round, runtime) => {
      const victim = runtime.inspect().find(({ actor }) => actor === `rank-${round % 2}`);
      if ((round === 1 || round === 4) && victim !== undefined) process.kill(victim.pid, "SIGKILL");
    },
  );
  expect(struck.numRestored).toBeGreaterThan(0);
  expect({ ...struck, numRestored: 0 }).toEqual(calm);
  expect(liveRefs()).toBe(0);
});

it("with a staleness of 2 it has the same bits again, and those of another order", async () => {
  const once = await train({ ranks: 2, zero: 2, ...kept }, 2);
  const again = await train({ ranks: 2, zero: 1, ...kept }, 2, true);
  expect(again).toEqual(once);
  expect(once.seen).not.toEqual((await train({ ranks: 2, zero: 2, ...kept }, 0)).seen);
});

it("reports rewards, lengths, staleness and texts in the words of an event, at the step that learns from them", async () => {
  await using runtime = await Runtime.spawn({ ranks: 1, threadsPerRank: 1, warmStandby: false });
  const reported: unknown[] = [];
  runtime.on("rollouts.judged", ({ timeMs: _, ...event }) => reported.push(event));
  const url = new URL("../../../examples/grpo/job.ts", import.meta.url);
  await using policy = await runtime.open<typeof job>(url);
  const texts = await policy.generate(prompts.slice(0, 2), { maxNewTokens: 3, seed: 1 });
  policy.report({
    round: 0,
    staleness: 1,
    texts,
    rewards: [1, 0],
    prompts: ["sort 003", "sort 141"],
    klNats: 0.5,
  });
  policy.report({ round: 1, texts: [[1, 2]], rewards: [0.25] });
  const shown = texts.map(({ tokens }) => tokens.join(" "));
  // Listeners are called in a later turn.
  await vi.waitFor(() => expect(reported).toHaveLength(2), patience);
  expect(reported).toEqual([
    {
      ...{ kind: "rollouts.judged", schemaVersion: 2, step: 0, round: 0, staleness: 1, numTexts: 2 },
      ...{ meanReward: 0.5, meanTokens: 3, klNats: 0.5 },
      texts: [
        { prompt: "sort 003", text: shown[0], reward: 1 },
        { prompt: "sort 141", text: shown[1], reward: 0 },
      ],
    },
    {
      ...{ kind: "rollouts.judged", schemaVersion: 2, step: 0, round: 1, staleness: 0, numTexts: 1 },
      ...{ meanReward: 0.25, meanTokens: 2, texts: [{ prompt: "", text: "1 2", reward: 0.25 }] },
    },
  ]);
  const unrewarded = { round: 2, texts: [[1]] } as unknown as Parameters<typeof policy.report>[0];
  for (const few of [{ ...unrewarded, rewards: [] }, unrewarded])
    expect(() => policy.report(few)).toThrow("[report] expected 1 rewards, one for each text, got 0");
});
