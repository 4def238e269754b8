import { attach, hold, scope, type TensorRef } from "../../../compute/tensor/index.ts";
import { TroupeError } from "../../../errors/index.ts";
import type { Addressed } from "../../../runtime/index.ts";
import { type InitialStateOf, sentTo } from "../../protocols/index.ts";
import type { InitialValues } from "./initial-values.ts";

/** Values of a copy in the checkpointer's memory. `fill` throws `MEMORY_COPY_LOST` if the copy or its holder is gone. */
export function keptValues(
  { step, checkpointer, deadlineMs, progress }: InitialStateOf<"memory">,
  reader: Addressed,
): InitialValues {
  return {
    async fill(state) {
      const { tensors } = state;
      const wanted = tensors.map(({ kind, pieces }) => ({ kind, pieces }));
      const { owner = "" } = sentTo(reader);
      const { values } = await checkpointer
        .ask("restore", { step, wanted, owner }, { deadlineMs })
        .catch((cause: unknown) => {
          throw memoryCopyLost(step, cause);
        });
      for (const [index, { tensor: into, pieces }] of tensors.entries()) {
        for (const [place, { rangeBegin, numel }] of pieces.entries()) {
          const kept = hold(() => attach(values[index]?.[place] as TensorRef));
          scope(() => {
            into.narrow(0, rangeBegin, numel).copy_(kept);
          });
          kept.dispose();
        }
      }
      state.publish(progress);
    },
    async [Symbol.asyncDispose]() {},
  };
}

function memoryCopyLost(step: number, cause: unknown): TroupeError {
  return new TroupeError("MEMORY_COPY_LOST", {
    where: "restore",
    expected: `the checkpointer to hold step ${step} in memory`,
    got: `"${(cause as Error).message}"`,
    hint: "the run goes on from the newest checkpoint",
    fields: { step },
    cause,
  });
}
