import { ops, type Tensor } from "../tensor/index.ts";
import { type Initializer, normal } from "./initializer.ts";
import { Module } from "./module.ts";
import { Parameter } from "./parameter.ts";

/** A table of vectors looked up by integer ids; weight [rows, width], normal with deviation 1 unless told otherwise. */
export class Embedding extends Module {
  readonly weight: Parameter;

  constructor(numRows: number, width: number, init: Initializer = normal(0, 1)) {
    super();
    this.weight = new Parameter([numRows, width], init);
  }

  /** @param ids - int64, any shape, each in [0, rows): the caller has checked them */
  override forward(ids: Tensor): Tensor {
    return ops.embedding(this.weight.tensor, ids); // [...] → [..., width]
  }
}
