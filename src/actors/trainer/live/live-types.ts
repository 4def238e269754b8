import type { Job, Losses } from "../../../job/index.ts";
import type { Batch, Rows, SampleRange } from "../../../library/data/index.ts";
import type { GeneratedText, GenerateOptions } from "../../../library/models/index.ts";
import type { EvaluatedLoss } from "../../engine/conductor/index.ts";

/** Calls that read a model. */
export interface ReadModel<J> extends AsyncDisposable {
  call<N extends RowsName<ProgramsOf<J>>>(
    program: N,
    batch: BatchOf<ProgramsOf<J>[N]>,
    ...args: ArgsOf<ProgramsOf<J>[N]>
  ): Promise<{ readonly rows: RowsOf<ProgramsOf<J>[N]> }>;
  generate(
    prompts: readonly (string | readonly number[])[],
    options: TextOptions,
  ): Promise<readonly GeneratedText[]>;
  evaluate(): Promise<Readonly<Record<string, EvaluatedLoss>>>;
  close(): Promise<void>;
}

/** Options of a live model's texts: the rest of `generate`'s are the runtime's. */
export type TextOptions = Omit<GenerateOptions, "firstPrompt" | "tokenizer" | "onToken">;

/** The programs of a job, its loss included. */
export type ProgramsOf<J> = J extends Job<infer _Config, infer P> ? P : never;

type AnyProgram = (...given: never[]) => unknown;

/** Names of the programs with a loss, which a script can train. */
export type LossName<P> = NameWith<P, Losses>;

/** Names of the programs with rows, which a script can read. */
export type RowsName<P> = NameWith<P, Rows>;

type NameWith<P, Result> = {
  [N in keyof P & string]: P[N] extends AnyProgram ? (ReturnType<P[N]> extends Result ? N : never) : never;
}[keyof P & string];

/** The batch that a program takes: samples, or a range of the dataset's. */
export type BatchOf<F> = F extends (model: never, batch: infer B, ...rest: never[]) => unknown
  ? ([B] extends [never] ? Batch : B) | SampleRange
  : never;

/** The arguments of a program, after the batch. */
export type ArgsOf<F> = F extends (model: never, batch: never) => unknown
  ? []
  : F extends (model: never, batch: never, args: infer A, ...rest: never[]) => unknown
    ? [A] extends [never]
      ? [args?: unknown]
      : undefined extends A
        ? [args?: A]
        : [args: A]
    : never;

/** The rows that a program gives. */
export type RowsOf<F> = F extends (...given: never[]) => infer R ? R : never;
