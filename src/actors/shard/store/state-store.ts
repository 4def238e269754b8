import type { DeviceScales } from "../../../compute/optim/index.ts";
import { type BlockState, MASTER } from "../../../compute/parallel/index.ts";
import { hold, type Tensor, tagMemory, zeros } from "../../../compute/tensor/index.ts";
import { type Addressed, systemClock } from "../../../runtime/index.ts";
import { UpdateInspection } from "../../inspect/index.ts";
import type { BlockUpdate, BlockUpdated, InitialState, SnapshotOrder } from "../../protocols/index.ts";
import { openValues } from "../../state/initial/index.ts";
import { NOTHING_PAGED, type ParameterPaging, whilePinned } from "../../state/paging/index.ts";
import { Snapshots } from "./snapshots.ts";

/** Keeps the optimizers' state of one rank's share of some blocks, and applies the update rules to it. */
export interface OptimizerStateStore {
  /** Fills state and parameters with the run's initial state. @param reader - the actor in whose thread they are */
  fill(initial: InitialState, reader: Addressed): Promise<void>;
  /**
   * Makes one optimizer step on a block. @returns once the new parameters are where the ranks read them
   * @param gradient - of the owned range, summed, in any float dtype; ownership passes
   * @param scales - only if the parameters and all their state are on a device; the caller's until then
   */
  update(update: BlockUpdate, gradient: Tensor, scales?: DeviceScales): Promise<BlockUpdated>;
  /** Begins the state of a block, zeros, from `step` on, if it has none: it was frozen, and this step trains some of it. */
  keepState(step: number, block: number): Promise<void>;
  /** Sends the state that follows a step to the checkpointer, each block copied before its next update. */
  snapshot(order: SnapshotOrder): void;
  /** All updates of `step` are made: the rest of its snapshot is copied when there is time. */
  settle(step: number): Promise<void>;
  stop(): void;
}

/** A rank's share of a collective that an update asks for. @returns the shares of all ranks, in rank order; the caller's */
export type ShareWithRanks = (
  update: BlockUpdate,
  round: number,
  value: Tensor,
) => Promise<readonly Tensor[]>;

/** Keeps the state in memory, in the thread that makes it, and updates it there. */
export class MemoryStateStore implements OptimizerStateStore {
  readonly #states: ReadonlyMap<number, BlockState>;
  readonly #share: ShareWithRanks;
  readonly #paging: ParameterPaging;
  readonly #zerosFor: (layout: { readonly kind: string; readonly numel: number }) => Tensor;
  readonly #snapshots = new Snapshots();

  /** @param states - their memory is made here, as zeros; ownership passes @param kindOf - the ledger's name for it */
  constructor(
    states: readonly BlockState[],
    share: ShareWithRanks,
    paging: ParameterPaging = NOTHING_PAGED,
    kindOf = ledgerKindOf,
  ) {
    this.#states = new Map(states.map((state) => [state.block, state]));
    this.#share = share;
    this.#paging = paging;
    this.#zerosFor = ({ kind, numel }) =>
      tagMemory(kindOf(kind), () => hold(() => zeros([numel], { dtype: "float32" })));
    for (const state of states) state.bind(state.layouts.map(this.#zerosFor));
  }

  async fill(initial: InitialState, reader: Addressed): Promise<void> {
    await using values = await openValues(initial, reader);
    for (const state of this.#states.values())
      await whilePinned(this.#paging, state.layout, "overwrite", () => values.fill(state));
  }

  async update(update: BlockUpdate, gradient: Tensor, scales?: DeviceScales): Promise<BlockUpdated> {
    const state = this.#at(update.block);
    try {
      await copiedBefore(update, state, this.#snapshots);
      return await runUpdate(state, update, gradient, this.#share, scales);
    } finally {
      gradient.dispose();
    }
  }

  async keepState(step: number, block: number): Promise<void> {
    const state = this.#at(block);
    if (state.keepsState) return;
    await copiedBefore({ step }, state, this.#snapshots);
    state.keepState(this.#zerosFor);
  }

  snapshot(order: SnapshotOrder): void {
    this.#snapshots.begin(order);
  }

  async settle(step: number): Promise<void> {
    const snapshot = this.#snapshots.of(step);
    if (snapshot === undefined) return;
    for (const state of this.#states.values()) {
      if (!snapshot.lacks(state.block)) continue;
      const copy = () => snapshot.copyOffThread(state);
      if (state.keepsMaster) await copy();
      else await whilePinned(this.#paging, state.layout, "read", copy);
    }
  }

  stop(): void {
    this.#snapshots.dispose();
    for (const state of this.#states.values()) state.dispose();
  }

  #at(block: number): BlockState {
    const state = this.#states.get(block);
    if (state === undefined) throw new RangeError(`[shard] the state of block ${block} is kept elsewhere`);
    return state;
  }
}

/** Splits the blocks among several stores. */
export function splitStateStore(
  stores: readonly OptimizerStateStore[],
  storeOf: (block: number) => OptimizerStateStore,
): OptimizerStateStore {
  return {
    async fill(initial, reader) {
      await Promise.all(stores.map((store) => store.fill(initial, reader)));
    },
    update: (update, gradient, scales) => storeOf(update.block).update(update, gradient, scales),
    keepState: (step, block) => storeOf(block).keepState(step, block),
    snapshot(order) {
      for (const store of stores) store.snapshot(order);
    },
    async settle(step) {
      await Promise.all(stores.map((store) => store.settle(step)));
    },
    stop() {
      for (const store of stores) store.stop();
    },
  };
}

/** Runs an update to its end, in this turn unless it needs an exchange with other ranks. */
export async function runUpdate(
  state: BlockState,
  update: BlockUpdate,
  gradient: Tensor,
  share: ShareWithRanks,
  scales?: DeviceScales,
): Promise<BlockUpdated> {
  using inspection = new UpdateInspection(state, update);
  const rounds = state.update(gradient, update, scales);
  let answer: readonly Tensor[] = [];
  let totalMs = 0;
  try {
    for (let round = 0; ; round++) {
      const beginMs = systemClock.now();
      const turn = rounds.next(answer);
      totalMs += systemClock.now() - beginMs;
      for (const tensor of answer) tensor.dispose();
      if (turn.done) return { updateMs: totalMs, inspected: inspection.end() };
      answer = await share(update, round, turn.value);
    }
  } finally {
    rounds.return();
  }
}

/** Copies the blocks that an update is about to overwrite first, if snapshots of earlier steps still lack them. */
export async function copiedBefore(
  { step }: Pick<BlockUpdate, "step">,
  state: BlockState,
  snapshots: Snapshots,
): Promise<void> {
  for (const snapshot of snapshots.before(step)) await snapshot.copy(state);
}

const ledgerKindOf = (kind: string): string => (kind === MASTER ? "master" : "optimizer");
