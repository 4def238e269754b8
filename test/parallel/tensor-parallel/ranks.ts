import { once } from "node:events";
import { Worker } from "node:worker_threads";
import { expect } from "vitest";
import type { Answer, Program, Task } from "../../fixtures/tensor-parallel/rank.ts";

const script = new URL("../../fixtures/tensor-parallel/rank.ts", import.meta.url);

/** Threads that each play one tensor-parallel rank, kept from test to test. */
export class Ranks<Programs> {
  readonly #module: string;
  readonly #threads: Worker[] = [];
  #numGroups = 0;

  /** @param module - exports the programs, by name */
  constructor(module: URL) {
    this.#module = module.href;
  }

  /** Runs a program on `size` ranks of a new group. @returns their answers, in rank order */
  async run<Name extends keyof Programs & string>(
    program: Name,
    size: number,
    argument: ArgumentOf<Programs[Name]>,
  ): Promise<AnswerOf<Programs[Name]>[]> {
    const group = `tensor-parallel-${process.pid}-${this.#module}-${this.#numGroups++}`;
    const answers = Array.from({ length: size }, async (_, rank) => {
      const thread = this.#thread(rank);
      const answer = once(thread, "message");
      thread.postMessage({ group, rank, size, module: this.#module, program, argument } satisfies Task);
      return (await answer)[0] as Answer;
    });
    return (await Promise.all(answers)).map((answer) => {
      if ("error" in answer) throw new Error(answer.error);
      return answer.value as AnswerOf<Programs[Name]>;
    });
  }

  async stop(): Promise<void> {
    await Promise.all(this.#threads.map((thread) => thread.terminate()));
  }

  #thread(rank: number): Worker {
    this.#threads[rank] ??= new Worker(script);
    return this.#threads[rank];
  }
}

type ArgumentOf<P> = P extends Program<infer Argument, unknown> ? Argument : never;
type AnswerOf<P> = P extends (...args: never[]) => infer Answer ? Answer : never;

/** Expects every tensor to be the other one's within `tolerance` of its largest value. */
export function expectNear(
  got: ReadonlyMap<string, Float64Array>,
  expected: ReadonlyMap<string, Float64Array>,
  tolerance: number,
): void {
  expect([...got.keys()]).toEqual([...expected.keys()]);
  for (const [name, values] of expected) {
    expect(relativeError(got.get(name) as Float64Array, values), name).toBeLessThan(tolerance);
  }
}

/** Largest difference, relative to the largest expected value. */
export function relativeError(got: Float64Array, expected: Float64Array): number {
  expect(got.length).toBe(expected.length);
  const largest = expected.reduce((most, value) => Math.max(most, Math.abs(value)), Number.MIN_VALUE);
  return (
    got.reduce((most, value, index) => Math.max(most, Math.abs(value - (expected[index] ?? 0))), 0) / largest
  );
}
