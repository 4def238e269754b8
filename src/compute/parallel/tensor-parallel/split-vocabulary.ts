import { TroupeError } from "../../../errors/index.ts";
import { type Communicator, copyToGroup, gatherFromGroup, reduceFromGroup } from "../../collectives/index.ts";
import * as nn from "../../nn/index.ts";
import { type Device, type LateNumber, ops, readLater, scope, type Tensor } from "../../tensor/index.ts";
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

/** Number of first calls that are all compared: inputs drawn by the wrong rank differ from the beginning. */
const FIRST = 16;

/** After these, one call in this many is compared, which finds later differences. */
const EACH = 64;

/**
 * Checks that ranks which split a layer look up the same words. Each rank adds the rows that it holds, so different texts would
 * give a sum that belongs to no text, equal on all ranks.
 */
class AlikeInputs {
  readonly #group: Communicator;
  #numCalls = 0;
  /** How far apart the ranks' last checksums were. A device delivers it late, and no step waits for it. */
  #spread: LateNumber | undefined;

  constructor(group: Communicator) {
    this.#group = group;
  }

  /**
   * Called alike on all ranks of the group. On a device a difference is found by the next comparison.
   * @param ids - int64, any shape
   * @throws {TroupeError} `RANKS_DIFFER`
   */
  check(ids: Tensor): void {
    const call = this.#numCalls++;
    const { device } = ids;
    if (device === "meta" || (call >= FIRST && call % EACH !== 0)) return;
    this.#requireAlike();
    this.#spread = scope(() => {
      const sum = checksum(ids, device);
      const both = ops.stack([sum, sum.neg()], 0);
      this.#group.allReduce(both, "max").wait();
      return readLater(both.sum());
    });
    if (device === "cpu") this.#requireAlike();
  }

  #requireAlike(): void {
    const spread = this.#spread;
    this.#spread = undefined;
    if (spread === undefined || spread() === 0) return;
    throw new TroupeError("RANKS_DIFFER", {
      where: "tensor parallel",
      expected: "ranks that split the layers of one replica to be given the same inputs",
      got: "other words on one than on another",
      hint: "were they drawn or chosen by rank.index? Take rank.axes.dp.index, which they share",
    });
  }
}

/** @returns a float64 scalar that tells texts apart, the order of their words included */
function checksum(ids: Tensor, device: Device): Tensor {
  const flat = ids.reshape([-1]).to("float64");
  const places = ops
    .arange(1, ids.numel + 1, 1, "int64")
    .to("float64")
    .onto(device);
  return flat.add(1).mul(places.sqrt()).sum();
}
