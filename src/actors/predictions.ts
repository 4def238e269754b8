import { attach, hold, ops, scope, type Tensor } from "../compute/tensor/index.ts";
import { TroupeError } from "../errors/index.ts";
import type { Rows } from "../library/data/index.ts";
import type { EvaluatedSamples, EvaluationName, PredictedRows } from "./protocols/index.ts";

/** The rows of consecutive samples, each tensor held. */
interface PredictedPart {
  readonly position: number;
  readonly rows: Rows;
}

/** Collects the model's predictions of an evaluation's samples, sent by any rank in any order. */
export class Predictions {
  readonly #parts = new Map<string, PredictedPart[]>();

  /** Takes rows from any device into host memory, where they can be joined. */
  add(evaluation: PredictedRows): void {
    const rows = Object.fromEntries(
      Object.entries(evaluation.rows).map(([name, ref]) => [
        name,
        scope(() => hold(attach(ref).onto("cpu"))),
      ]),
    );
    const parts = this.#parts.get(keyOf(evaluation)) ?? [];
    this.#parts.set(keyOf(evaluation), [...parts, { position: evaluation.position, rows }]);
  }

  /**
   * Returns all rows of an evaluation in the order of its samples, the caller's to dispose, and forgets it.
   * @throws {TroupeError} `PREDICTIONS` if batches differ in names, types or shapes, or rows are missing
   */
  take(evaluation: EvaluatedSamples): Rows {
    const parts = this.#parts.get(keyOf(evaluation)) ?? [];
    this.#parts.delete(keyOf(evaluation));
    parts.sort((a, b) => a.position - b.position);
    try {
      return joined(parts, evaluation.numSamples);
    } finally {
      disposeParts(parts);
    }
  }

  /** Drops all rows. */
  drop(): void {
    for (const parts of this.#parts.values()) disposeParts(parts);
    this.#parts.clear();
  }
}

function disposeParts(parts: readonly PredictedPart[]): void {
  for (const { rows } of parts) for (const tensor of Object.values(rows)) tensor.dispose();
}

const keyOf = ({ step, split }: EvaluationName) => `${step} ${split}`;

function joined(parts: readonly PredictedPart[], numSamples: number): Rows {
  const [first] = parts;
  for (const part of parts) checkAlike(first?.rows ?? {}, part.rows);
  return Object.fromEntries(
    Object.keys(first?.rows ?? {}).map((name) => {
      const all = hold(() => ops.cat(parts.map(({ rows }) => rows[name] as Tensor)));
      if (all.shape[0] !== numSamples) throw refuse(`a row for each of ${numSamples} samples`, all.shape[0]);
      return [name, all];
    }),
  );
}

/** @throws {TroupeError} `PREDICTIONS` if two batches cannot be joined */
function checkAlike(first: Rows, rows: Rows): void {
  const kindsOf = (of: Rows) =>
    Object.entries(of)
      .map(([name, { dtype, shape }]) => `${name}: ${dtype} [samples, ${shape.slice(1)}]`)
      .sort()
      .join("; ");
  if (kindsOf(first) === kindsOf(rows)) return;
  throw refuse(`every batch's rows to be alike, ${kindsOf(first)}`, kindsOf(rows));
}

function refuse(expected: string, got: unknown): TroupeError {
  return new TroupeError("PREDICTIONS", {
    where: "predict",
    expected,
    got: `${got}`,
    hint: "pad what differs in length to one length",
    fields: { got },
  });
}
