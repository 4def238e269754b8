import { type Communicator, copyToGroup, gatherFromGroup, reduceFromGroup } from "../../collectives/index.ts";
import * as nn from "../../nn/index.ts";
import { ops, scope, type Tensor } from "../../tensor/index.ts";
import { AlikeInputs } from "./alike-inputs.ts";
import type { SequenceRegion } from "./sequence-region.ts";

/** Wraps a token embedding split by words: each rank looks up the words it holds, zeros stand for the rest, sums join them. */
export function wrapEmbedding(module: nn.Embedding, group: Communicator): void {
  const inputs = new AlikeInputs(group);
  nn.wrapForward(module, (_, [ids]) =>
    scope(() => {
      // A planner traces the model alone, with weights that hold no memory.
      if (module.weight.tensor.device !== "meta") inputs.check(ids);
      const [numHeld = 0] = module.weight.shape;
      const local = ids.sub(group.rank * numHeld);
      const elsewhere = local.lt(0).logicalOr(local.ge(numHeld));
      const padding = module.paddingRow === undefined ? -1 : module.paddingRow - group.rank * numHeld;
      const paddingHere = padding >= 0 && padding < numHeld ? padding : -1;
      const rows = module.lookUp(local.maskedFill(elsewhere, 0), paddingHere);
      return module.finish(reduceFromGroup(rows.maskedFill(elsewhere.unsqueeze(-1), 0), group));
    }),
  );
}

/**
 * Wraps a vocabulary head split by words. Each rank computes the loss from its own logits, a chunk at a time, with reductions
 * of a few numbers a row; only requested logits are gathered.
 */
export function wrapHead(
  module: nn.VocabularyHead,
  input: "replicated" | "sequence",
  region: SequenceRegion,
): void {
  const { group } = region;
  nn.wrapForward(module, (_, [hidden, request = {}]) =>
    scope(() => {
      const { targets, loss, offsets, numPositions } = request;
      const gathered = input === "sequence" ? region.gather(hidden) : copyToGroup(hidden, group); // [B, T, D]
      const share = shareOf(module.weight, group);
      const { weight } = module;
      const bias = nn.addedTo(module.bias?.tensor, offsets && heldOffsets(offsets, weight, share));
      if (targets !== undefined)
        return nn.linearCrossEntropy(gathered, weight.tensor, targets, { ...loss, bias }, share);
      const logits = ops.linear(nn.lastPositions(gathered, numPositions), weight.tensor, bias); // [B, kept, V / count]
      return gatherFromGroup(logits, group, 2).narrow(2, 0, share.numClasses); // [B, kept, V]
    }),
  );
}

/** Offsets of the words that are here; zeros for padding. */
function heldOffsets(
  offsets: Tensor,
  { shape: [numHeld = 0] }: nn.Parameter,
  { first, numClasses }: nn.ClassShare,
): Tensor {
  const numHere = Math.max(0, Math.min(numHeld, numClasses - first));
  const here = offsets.narrow(0, Math.min(first, numClasses), numHere);
  return numHere === numHeld ? here : ops.cat([here, ops.zeros([numHeld - numHere], here.dtype)], 0);
}

function shareOf({ shape, split }: nn.Parameter, group: Communicator): nn.ClassShare {
  const [numHeld = 0] = shape;
  return {
    first: group.rank * numHeld,
    numClasses: split?.logicalShape[0] ?? numHeld,
    max: (values) => group.allReduce(values, "max").wait(),
    sum: (values) => group.allReduce(values, "sum").wait(),
  };
}
