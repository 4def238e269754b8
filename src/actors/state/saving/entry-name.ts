import { MASTER } from "../../../compute/parallel/index.ts";

/** @returns the name of one parameter's state in a checkpoint: its own in the model, `<kind>.<parameter>` in the optimizer */
export function entryName(kind: string, parameter: string): string {
  return kind === MASTER ? parameter : `${kind}.${parameter}`;
}
