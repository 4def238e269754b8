import { releaseRef, shareRef, type TensorRef } from "../../../compute/tensor/index.ts";
import { TroupeError } from "../../../errors/index.ts";
import type { KeptState, RestoreRequest } from "../../protocols/index.ts";
import { entryName } from "./entry-name.ts";
import type { StateImage } from "./state-image.ts";

/** The state that is kept in memory, if any: the newest one. Owns its image. */
export class KeptCopy implements Disposable {
  #kept: { readonly state: KeptState; readonly image: StateImage } | undefined;

  get state(): KeptState | undefined {
    return this.#kept?.state;
  }

  /** Keeps this state instead; ownership of the image passes. */
  replace(state: KeptState, image: StateImage): void {
    this[Symbol.dispose]();
    this.#kept = { state, image };
  }

  /**
   * @returns for each wanted tensor its values piece by piece, flat: shared, read-only
   * @throws {TroupeError} `MEMORY_COPY_LOST` if another step is kept, or some of it is missing
   */
  restore({ step, wanted, owner }: RestoreRequest): TensorRef[][] {
    const kept = this.#kept;
    if (kept?.state.step !== step)
      throw notKept(step, kept === undefined ? "none" : `step ${kept.state.step}`);
    const refs: TensorRef[][] = [];
    try {
      for (const { kind, pieces } of wanted) {
        const ofKind: TensorRef[] = [];
        refs.push(ofKind);
        for (const piece of pieces) {
          const values = kept.image.piece(kind, piece);
          if (values === undefined) throw notKept(step, `no ${entryName(kind, piece.parameter.name)}`);
          ofKind.push(shareRef(values, { owner }));
          values.dispose();
        }
      }
      return refs;
    } catch (error) {
      for (const ref of refs.flat()) releaseRef(ref);
      throw error;
    }
  }

  [Symbol.dispose](): void {
    this.#kept?.image[Symbol.dispose]();
    this.#kept = undefined;
  }
}

function notKept(step: number, got: string): TroupeError {
  return new TroupeError("MEMORY_COPY_LOST", {
    where: "checkpoint",
    expected: `the state of step ${step} in memory`,
    got,
    hint: "go on from a checkpoint",
    fields: { step },
  });
}
