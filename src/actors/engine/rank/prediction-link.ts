import { hold, moveRef, Tensor } from "../../../compute/tensor/index.ts";
import { describeValue, TroupeError } from "../../../errors/index.ts";
import type { Rows } from "../../../library/data/index.ts";
import type { ActorContext, ActorRef, Pending } from "../../../runtime/index.ts";
import { type BatchRequest, type FeederProtocol, type RowRefs, sentTo } from "../../protocols/index.ts";

/** Sends a rank's predictions back to the data's feeder. */
export class PredictionLink {
  readonly #context: Pick<ActorContext<unknown>, "request" | "wait">;
  readonly #feeder: ActorRef<FeederProtocol>;
  readonly #deadlineMs: number;
  readonly #underWay: Pending<Record<string, never>>[] = [];

  constructor(
    context: Pick<ActorContext<unknown>, "request" | "wait">,
    feeder: ActorRef<FeederProtocol>,
    deadlineMs: number,
  ) {
    this.#context = context;
    this.#feeder = feeder;
    this.#deadlineMs = deadlineMs;
  }

  /**
   * Sends the predictions of a batch; the tensors stay the caller's.
   * @param by - the job's function that made them
   * @throws {TroupeError} `PREDICTIONS` if they are no tensors by name, with one row for each of the batch's samples
   */
  send(by: string, step: number, { split, position, numSamples }: BatchRequest, rows: Rows): void {
    if (rows instanceof Tensor) throw refuse(by, "rows by name, as in { logits }", "a Tensor");
    const refs: [string, RowRefs[string]][] = Object.entries(rows).map(([name, tensor]) => {
      checkRows(by, name, tensor, numSamples);
      // A copy: a row may be a part of the batch, or of a tensor that the model keeps.
      return [
        name,
        moveRef(
          hold(() => tensor.detach().clone()),
          sentTo(this.#feeder),
        ),
      ];
    });
    const part = { step, split, position, rows: Object.fromEntries(refs) };
    this.#underWay.push(
      this.#context.request(this.#feeder, "predicted", part, { deadlineMs: this.#deadlineMs }),
    );
  }

  /** Returns once all sent predictions have arrived. */
  settle(): void {
    for (const arrived of this.#underWay.splice(0)) this.#context.wait(arrived);
  }
}

function checkRows(by: string, name: string, tensor: unknown, numSamples: number): void {
  if (!(tensor instanceof Tensor)) throw refuse(by, `"${name}" to be a tensor`, describeValue(tensor));
  const { shape } = tensor;
  if (shape[0] === numSamples) return;
  throw new TroupeError("PREDICTIONS", {
    where: by,
    expected: `"${name}" to have a row for each of ${numSamples} samples`,
    got: `shape [${shape}]`,
    hint: "keep the batch's samples in dim 0",
    fields: { name, numSamples, shape: [...shape] },
  });
}

function refuse(by: string, expected: string, got: string): TroupeError {
  return new TroupeError("PREDICTIONS", { where: by, expected, got, fields: { got } });
}
