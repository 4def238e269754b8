import type { Module } from "../../../compute/nn/index.ts";
import { Tensor } from "../../../compute/tensor/index.ts";
import { TroupeError } from "../../../errors/index.ts";
import type { Losses } from "../../../job/index.ts";

/** Whether any loss requires a gradient. A loss without values reads a tensor of another stage, and is refused as that. */
export function needGradient(losses: Losses): boolean {
  const each = losses instanceof Tensor ? [losses] : Object.values(losses);
  return each.some((loss) => loss.requiresGrad || loss.device === "meta");
}

/** @throws {TroupeError} `LOSS_INVALID` if there are trainable parameters but the losses do not depend on them */
export function refuseDetached(model: Module, where: string): void {
  if (!model.parameters().some(({ trainable }) => trainable)) return;
  throw new TroupeError("LOSS_INVALID", {
    where,
    expected: "a loss that depends on the model's parameters",
    got: "one that needs no gradient",
    hint: "compute it from what the model returns, without detach, noGrad or item()",
  });
}
