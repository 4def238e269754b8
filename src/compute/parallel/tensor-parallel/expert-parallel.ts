import { allToAll, type Communicator } from "../../collectives/index.ts";
import { type Experts, MixtureOfExperts, type Module, wrapForward } from "../../nn/index.ts";
import { full, scope, type Tensor } from "../../tensor/index.ts";

/**
 * Deals the experts of every mixture in a model to the ranks of `group`: each rank keeps its share of them, tokens travel to
 * their experts and back. Each rank has tokens of its own and computes what it would compute with all experts. An expert's
 * gradient is that of all ranks' tokens.
 * @param model - without memory
 * @throws {TroupeError} `PARAMETER_SPLIT` if the ranks do not divide the experts @see Rajbhandari et al. 2022, "DeepSpeed-MoE",
 * https://arxiv.org/abs/2201.05596
 */
export function expertParallel(model: Module, group: Communicator): void {
  cutExperts(model, { index: group.rank, count: group.size });
  if (group.size === 1) return;
  for (const mixture of mixturesIn(model)) {
    mixture.agreeOnCapacity = (capacity) => largest(capacity, group);
    wrapForward(mixture.experts, (forward, [tokens]) => scope(() => travel(tokens, forward, group)));
  }
}

/**
 * Keeps one rank's experts of a model, and marks their parameters as `expert`; names, initial values and entries of a
 * checkpoint stay those of all.
 * @throws {TroupeError} `PARAMETER_SPLIT`
 */
export function cutExperts(model: Module, place: { readonly index: number; readonly count: number }): void {
  for (const { experts } of mixturesIn(model)) {
    for (const parameter of experts.parameters()) {
      parameter.expert = true;
      if (place.count > 1) parameter.cut({ dim: 0, ...place });
    }
  }
}

/** @returns the number of experts in each mixture of a model: the number of expert-parallel ranks must divide it */
export function expertCounts(model: Module): number[] {
  return mixturesIn(model).map(({ experts }) => experts.numExperts);
}

function mixturesIn(model: Module): MixtureOfExperts[] {
  return [...model.namedModules().values()].filter((module) => module instanceof MixtureOfExperts);
}

/** Sends each expert's tokens of this rank, [E, C, D], to the expert, and its answers back. R ranks, E' experts a rank. */
function travel(tokens: Tensor, forward: Experts["forward"], group: Communicator): Tensor {
  const [numExperts = 0, capacity = 0, width = 0] = tokens.shape;
  const [size, held] = [group.size, numExperts / group.size];
  const arrived = allToAll(tokens, group) // [R · E', C, D]: from each rank, for the experts here
    .view([size, held, capacity, width])
    .transpose(0, 1)
    .reshape([held, size * capacity, width]);
  const answers = forward(arrived) // [E', R · C, D]
    .view([held, size, capacity, width])
    .transpose(0, 1)
    .reshape([numExperts, capacity, width]);
  return allToAll(answers, group); // [E, C, D]
}

function largest(capacity: number, group: Communicator): number {
  return scope(() => {
    const agreed = full([1], capacity, { dtype: "int64" });
    group.allReduce(agreed, "max").wait();
    return agreed.item();
  });
}
