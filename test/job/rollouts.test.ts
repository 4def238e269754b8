import { describe, expect, it } from "vitest";
import { TroupeError } from "../../src/entries/index.ts";
import { type RolloutOptions, rollouts } from "../../src/entries/objectives.ts";

/** Trains for some rounds. @returns what was written, judged and trained on, in order */
async function log(options: Partial<RolloutOptions<number, number>>): Promise<string[]> {
  const done: string[] = [];
  const plan: RolloutOptions<number, number> = {
    rounds: 4,
    write: async (round) => {
      done.push(`write ${round}`);
      return 10 * round;
    },
    judge: (texts) => texts + 1,
    ...options,
  };
  for await (const { round, staleness, texts, marks } of rollouts(plan)) {
    expect([texts, marks]).toEqual([10 * round, 10 * round + 1]);
    done.push(`train ${round}, ${staleness} late`);
  }
  return done;
}

/** After a time that has nothing to do with the order of the calls. */
const late = (round: number) => new Promise((resolve) => setTimeout(resolve, (7 * round) % 4));

describe("rollouts", () => {
  it("with a staleness of 0, each round is written by what the last has learned", async () => {
    const expected = [0, 1, 2, 3].flatMap((round) => [`write ${round}`, `train ${round}, 0 late`]);
    expect(await log({})).toEqual(expected);
    expect(await log({ staleness: 0 })).toEqual(expected);
  });

  it("are written at most so many rounds ahead, each once, in an order that time does not change", async () => {
    const expected = [
      ...["write 0", "write 1", "write 2", "train 0, 0 late", "write 3", "train 1, 1 late"],
      ...["train 2, 2 late", "train 3, 2 late"],
    ];
    expect(await log({ staleness: 2 })).toEqual(expected);
    const judge = async (texts: number) => late(texts).then(() => texts + 1);
    expect(await log({ staleness: 2, judge })).toEqual(expected);
    expect(await log({ rounds: 2, staleness: 5 })).toEqual([
      ...["write 0", "write 1", "train 0, 0 late", "train 1, 1 late"],
    ]);
    expect(await log({ rounds: 0 })).toEqual([]);
  });

  it("are judged while later ones are written", async () => {
    let wake = () => {};
    const written = new Promise<void>((resolve) => {
      wake = resolve;
    });
    const done = await log({
      rounds: 2,
      staleness: 1,
      write: async (round) => {
        if (round === 1) wake();
        return 10 * round;
      },
      judge: (texts) => written.then(() => texts + 1),
    });
    expect(done).toEqual(["train 0, 0 late", "train 1, 1 late"]);
  });

  it("ask a judge again whose actor has ended, and give up in the end", async () => {
    const down = () =>
      new TroupeError("ACTOR_DOWN", { where: "ask", expected: "a living actor", got: "judge-0" });
    let questions = 0;
    const judge = (texts: number) => {
      questions += 1;
      if (questions % 3 !== 0) throw down();
      return texts + 1;
    };
    expect(await log({ judge })).toHaveLength(8);
    expect(questions).toBe(12);
    await expect(
      log({
        judge: () => {
          throw down();
        },
      }),
    ).rejects.toThrow("expected a living actor");
  });

  it("throw what a writer or a judge throws, at its round, and leave the others alone", async () => {
    const judge = (texts: number) => {
      if (texts === 20) throw new Error("the judge is undecided");
      return texts + 1;
    };
    await expect(log({ staleness: 3, judge })).rejects.toThrow("the judge is undecided");
    const write = (round: number) =>
      round === 2 ? Promise.reject(new Error("the pen is empty")) : Promise.resolve(10 * round);
    await expect(log({ staleness: 3, write })).rejects.toThrow("the pen is empty");
  });

  it.each([
    [{ rounds: -1 }, "[rollouts] expected rounds to be a whole number, got -1"],
    [{ staleness: 0.5 }, "[rollouts] expected staleness to be a whole number, got 0.5"],
  ])("refuse numbers that are none: %o", async (options, message) => {
    await expect(log(options)).rejects.toThrow(message);
  });
});
