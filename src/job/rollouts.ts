import { TroupeError } from "../errors/index.ts";
import type { Awaitable } from "../library/data/index.ts";

/** Texts of one round, judged. */
export interface Rollout<Texts, Marks> {
  /** From 0. */
  readonly round: number;
  /** Rounds that the script has trained on between the parameters that wrote these texts and those that now learn from them. */
  readonly staleness: number;
  readonly texts: Texts;
  readonly marks: Marks;
}

/** Options of {@link rollouts}. */
export interface RolloutOptions<Texts, Marks> {
  /** How many there are. */
  readonly rounds: number;
  /** How many rounds ahead texts are written, while earlier ones are judged and trained on. Default: 0. */
  readonly staleness?: number;
  /** Writes the texts of a round, such as by `policy.generate`, by a seed that depends on the round. Is called once for each, in order. */
  readonly write: (round: number) => Promise<Texts>;
  /**
   * Marks the texts of a round as soon as they are written: a function, or a question to an actor. Rounds are judged at the same
   * time. If the actor ends before it has answered, it is asked again.
   */
  readonly judge: (texts: Texts, round: number) => Awaitable<Marks>;
}

/** Questions to a judge about one round. A pool gives up before. */
const MOST_QUESTIONS = 10;

/**
 * Gives a script the rounds that it trains on, each once and in order. Asking for the next says that all calls of this one are
 * made. The texts of round r are then written by the parameters after round r − 1 − staleness, whatever takes how long: the
 * order of the script's calls is the same each time, and so are its bits.
 * @throws the error of `write` or `judge`, at its round
 * @throws {TroupeError} `LIVE_CALL` if `rounds` or `staleness` is not a whole number
 */
export async function* rollouts<Texts, Marks>(
  options: RolloutOptions<Texts, Marks>,
): AsyncGenerator<Rollout<Texts, Marks>, void, void> {
  const { rounds, staleness = 0, write, judge } = options;
  for (const [name, value] of Object.entries({ rounds, staleness })) {
    if (Number.isSafeInteger(value) && value >= 0) continue;
    throw new TroupeError("LIVE_CALL", {
      where: "rollouts",
      expected: `${name} to be a whole number`,
      got: `${value}`,
    });
  }
  const begun: Promise<{ readonly texts: Texts; readonly marks: Marks }>[] = [];
  for (let round = 0; round < rounds; round++) {
    while (begun.length <= round + staleness && begun.length < rounds) {
      const next = judged(write, judge, begun.length);
      // A script that ends early leaves later rounds behind.
      next.catch(() => {});
      begun.push(next);
    }
    const done = await (begun[round] as (typeof begun)[number]);
    delete begun[round];
    yield { round, staleness: Math.min(round, staleness), ...done };
  }
}

async function judged<Texts, Marks>(
  write: (round: number) => Promise<Texts>,
  judge: (texts: Texts, round: number) => Awaitable<Marks>,
  round: number,
): Promise<{ readonly texts: Texts; readonly marks: Marks }> {
  const texts = await write(round);
  for (let question = 1; ; question++) {
    try {
      return { texts, marks: await judge(texts, round) };
    } catch (error) {
      const hasEnded = error instanceof TroupeError && error.code === "ACTOR_DOWN";
      if (!hasEnded || question === MOST_QUESTIONS) throw error;
    }
  }
}
