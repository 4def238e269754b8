import { StagedRecords } from "../../../compute/offload/index.ts";
import type { BlockState } from "../../../compute/parallel/index.ts";
import { hold, PAGE_BYTES, scope, type Tensor } from "../../../compute/tensor/index.ts";
import type { Addressed } from "../../../runtime/index.ts";
import type { BlockUpdate, BlockUpdated, InitialState, SnapshotOrder } from "../../protocols/index.ts";
import { openValues } from "../../state/initial/index.ts";
import { type ParameterPaging, whilePinned } from "../../state/paging/index.ts";
import { Snapshots } from "./snapshots.ts";
import { copiedBefore, type OptimizerStateStore, runUpdate, type ShareWithRanks } from "./state-store.ts";
import type { Turns } from "./turns.ts";

/** One block's state and its record in the file. */
interface Kept {
  readonly state: BlockState;
  readonly record: number;
}

const FLOATS_IN_PAGE = PAGE_BYTES / 4;

/**
 * Keeps the state in a scratch file, a record a block. A block's record is read while another block is updated, and
 * written while the next one is; the records with which the last step began are read before the next step needs them.
 */
export class FileStateStore implements OptimizerStateStore {
  readonly #kept: ReadonlyMap<number, Kept>;
  readonly #records: StagedRecords;
  readonly #turns: Turns;
  readonly #share: ShareWithRanks;
  readonly #placeOf: (block: number) => number;
  readonly #paging: ParameterPaging;
  readonly #snapshots = new Snapshots();
  /** The blocks of the present step, in the order of their updates, and of the step before. */
  #order: number[] = [];
  #lastOrder: readonly number[] = [];
  #step = -1;

  /**
   * @param directory - on the file's disk @param states - ownership passes @param turns - deal the arithmetic
   * @param placeOf - a block's place among those that wait for the disk; the lowest goes first
   * @throws {TroupeError} `SCRATCH_FILE`
   */
  constructor(
    directory: string,
    states: readonly BlockState[],
    turns: Turns,
    share: ShareWithRanks,
    paging: ParameterPaging,
    placeOf: (block: number) => number,
  ) {
    this.#placeOf = placeOf;
    this.#paging = paging;
    this.#kept = new Map(states.map((state, record) => [state.block, { state, record }]));
    this.#records = new StagedRecords(directory, states.map(recordNumel));
    this.#turns = turns;
    this.#share = share;
  }

  async fill(initial: InitialState, reader: Addressed): Promise<void> {
    await using values = await openValues(initial, reader);
    for (const { state, record } of this.#kept.values()) {
      const zeroAndFill = async (memory: Tensor) => {
        scope(() => memory.zero_());
        await this.#bound(state, memory, () => values.fill(state));
      };
      await whilePinned(this.#paging, state.layout, "overwrite", () =>
        this.#records.use(record, zeroAndFill, { fresh: true }),
      );
    }
    await this.#records.written();
  }

  async update(update: BlockUpdate, gradient: Tensor): Promise<BlockUpdated> {
    const { state, record } = this.#at(update.block);
    this.#note(update);
    try {
      const place = this.#placeOf(update.block);
      const work = async (memory: Tensor) => {
        await this.#turns.next(place);
        return this.#bound(state, memory, async () => {
          await copiedBefore(update, state, this.#snapshots);
          return runUpdate(state, update, gradient, this.#share);
        });
      };
      const updated = this.#records.use(record, work, { place });
      this.#readAhead();
      return await updated;
    } finally {
      gradient.dispose();
    }
  }

  /** The shard itself keeps what is declared frozen. */
  async keepState(): Promise<void> {}

  snapshot(order: SnapshotOrder): void {
    this.#snapshots.begin(order);
  }

  async settle(step: number): Promise<void> {
    const snapshot = this.#snapshots.of(step);
    if (snapshot !== undefined) {
      for (const { state, record } of this.#kept.values()) {
        if (!snapshot.lacks(state.block)) continue;
        const copy = (memory: Tensor) => this.#bound(state, memory, () => snapshot.copy(state));
        const send = () => this.#records.use(record, copy, { readOnly: true });
        if (state.keepsMaster) await send();
        else await whilePinned(this.#paging, state.layout, "read", send);
      }
    }
    await this.#records.written();
  }

  stop(): void {
    this.#snapshots.dispose();
    for (const { state } of this.#kept.values()) state.dispose();
    this.#records.dispose();
  }

  /** Runs `work` with a record's memory bound to the state. */
  async #bound<T>(state: BlockState, memory: Tensor, work: () => Promise<T>): Promise<T> {
    state.bind(partsOf(state, memory));
    try {
      return await work();
    } finally {
      state.unbind();
    }
  }

  #note({ step, block }: BlockUpdate): void {
    if (step !== this.#step) {
      this.#lastOrder = this.#order;
      this.#order = [];
      this.#step = step;
    }
    this.#order.push(block);
  }

  /** Steps update their blocks in one order: the block that followed in the last step, or began it, is needed next. */
  #readAhead(): void {
    const isOver = this.#order.length === this.#kept.size;
    const next = isOver ? this.#order : this.#lastOrder.slice(this.#order.length);
    for (const block of next.slice(0, 2)) this.#records.expect(this.#at(block).record);
  }

  #at(block: number): Kept {
    const kept = this.#kept.get(block);
    if (kept === undefined) throw new RangeError(`[offload] the state of block ${block} is kept elsewhere`);
    return kept;
  }
}

const roundUp = (numel: number) => Math.ceil(numel / FLOATS_IN_PAGE) * FLOATS_IN_PAGE;

/** Elements of a block's record: its state, each tensor aligned to a page. */
function recordNumel({ layouts }: BlockState): number {
  return layouts.reduce((sum, { numel }) => sum + roundUp(numel), 0);
}

function partsOf({ layouts }: BlockState, memory: Tensor): Tensor[] {
  let offset = 0;
  return layouts.map(({ numel }) => {
    const part = hold(() => memory.narrow(0, offset, numel));
    offset += roundUp(numel);
    return part;
  });
}
