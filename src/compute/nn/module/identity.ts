import type { Tensor } from "../../tensor/index.ts";
import { Module } from "./module.ts";

/** Returns its input. It gives plans a name for a place in a model. */
export class Identity extends Module {
  override forward(x: Tensor): Tensor {
    return x;
  }
}
