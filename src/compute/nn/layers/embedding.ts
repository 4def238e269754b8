import { TroupeError } from "../../../errors/index.ts";
import { empty, noGrad, ops, scope, type Tensor } from "../../tensor/index.ts";
import { argumentError } from "../argument-error.ts";
import { defineInitializer, type Initializer, initializeSlice, normal } from "../module/initializer.ts";
import { Module } from "../module/module.ts";
import { Parameter } from "../module/parameter.ts";

/** A table of vectors looked up by integer ids. Default: weight [rows, width], normal with deviation 1. */
export class Embedding extends Module {
  readonly weight: Parameter;
  /** The row of the padding token, which begins as zeros and gets no gradient; undefined if there is none. */
  readonly paddingRow: number | undefined;
  #behind: (Module & { forward(rows: Tensor): Tensor }) | undefined;

  /** @throws {TroupeError} `MODULE_ARGUMENT` for a padding row that is not one of the rows */
  constructor(numRows: number, width: number, init: Initializer = normal(0, 1), paddingRow?: number) {
    super();
    const plain = new Parameter([numRows, width], init);
    this.weight = paddingRow === undefined ? plain : withPadding(plain, paddingRow);
    this.paddingRow = paddingRow;
  }

  /**
   * Looks up rows, without what follows them.
   * @param ids - int64, any shape, each in [0, rows), checked by the caller
   * @param paddingRow - the padding row among the rows that this rank holds
   */
  lookUp(ids: Tensor, paddingRow: number | undefined = this.paddingRow): Tensor {
    try {
      return ops.embedding(this.weight.tensor, ids, paddingRow ?? -1); // [...] → [..., width]
    } catch (error) {
      throw outOfRange(error, ids, this.weight.tensor) ?? error;
    }
  }

  /** A module applied to the rows after the look-up, a child of this module. Set from outside. Default: none. */
  get behind(): (Module & { forward(rows: Tensor): Tensor }) | undefined {
    return this.#behind;
  }

  set behind(behind: (Module & { forward(rows: Tensor): Tensor }) | undefined) {
    this.#behind = behind;
  }

  /** Applies the module in {@link behind} to complete rows: [..., width] → [..., width]. */
  finish(rows: Tensor): Tensor {
    return this.#behind === undefined ? rows : this.#behind.forward(rows);
  }

  /** @param ids - int64, any shape, each in [0, rows), checked by the caller */
  override forward(ids: Tensor): Tensor {
    return this.finish(this.lookUp(ids));
  }
}

function withPadding({ shape, init }: Parameter, paddingRow: number): Parameter {
  const [numRows = 0] = shape;
  if (!Number.isSafeInteger(paddingRow) || paddingRow < 0 || paddingRow >= numRows)
    throw argumentError("Embedding", `a padding row from 0 to ${numRows - 1}`, paddingRow);
  return new Parameter(shape, padded({ init, paddingRow }));
}

interface Padded {
  readonly init: Initializer;
  readonly paddingRow: number;
}

/** The values of another initializer, with zeros in the row of the padding token. */
const padded = defineInitializer<Padded>(
  import.meta.url,
  "embedding with a padding row",
  ({ seed, name, shape, begin, end }, { init, paddingRow }) => {
    const values = empty([end - begin]);
    initializeSlice(values, { name, shape, init }, seed, begin);
    const [, width = 0] = shape;
    const first = Math.max(begin, paddingRow * width);
    const last = Math.min(end, (paddingRow + 1) * width);
    if (first < last) values.narrow(0, first - begin, last - first).zero_();
    return values;
  },
);

/**
 * Makes an error that names the id without a row, because libtorch says only that an index is out of range; undefined for any
 * other error.
 */
function outOfRange(error: unknown, ids: Tensor, { shape: [numRows = 0] }: Tensor): TroupeError | undefined {
  if (!(error instanceof Error && error.message.includes("index out of range"))) return undefined;
  const [lowest, highest] = scope(() => noGrad(() => [ids.min().item(), ids.max().item()]));
  const got = Number(lowest) < 0 ? lowest : highest;
  return new TroupeError("MODULE_ARGUMENT", {
    where: "Embedding",
    expected: `ids from 0 to ${numRows - 1}`,
    got: `${got}`,
    fields: { numRows, got },
    cause: error,
  });
}
