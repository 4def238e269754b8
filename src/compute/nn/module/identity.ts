import type { Tensor } from "../../tensor/index.ts";
import { Module } from "./module.ts";

/** Gives back what it is given: a place in a model that plans can name. */
export class Identity extends Module {
  override forward(x: Tensor): Tensor {
    return x;
  }
}
