import { mkdir } from "node:fs/promises";
import {
  type JsonObject,
  type JsonValue,
  sweepLeftovers,
  type TensorSource,
  type TrainerState,
  writeCheckpoint,
} from "../checkpoint/index.ts";
import { TroupeError } from "../errors.ts";
import { logicalRuns } from "../nn/index.ts";
import type { OptimizerProgress } from "../optim/index.ts";
import { MASTER, type Piece } from "../parallel/index.ts";
import { defineActor } from "../runtime/index.ts";
import { attach, hold, releaseRef, scope, type Tensor, type TensorRef } from "../tensor/index.ts";
import { entryName } from "./initial-state.ts";

/** A save that is about to be fed. Plain data. */
export interface SaveOrder {
  /** Life of the rank group that feeds it. */
  readonly life: number;
  /** Names of the model's parameters, in order. */
  readonly parameters: readonly string[];
  /** Parts that the shards will send. */
  readonly numParts: number;
  /** config.json of the model; empty where it has none. */
  readonly modelConfig: JsonObject;
  /** What a run needs to go on, beside tensors; how far the optimizer has come, the shards tell. */
  readonly state: TrainerState;
}

/** One rank's share of one block's state, after `step` updates; the tensors are copies and the receiver's. */
export interface SavePart {
  readonly life: number;
  readonly step: number;
  /** The master first, then what the optimizer keeps. */
  readonly state: readonly {
    readonly kind: string;
    readonly ref: TensorRef;
    readonly pieces: readonly Piece[];
  }[];
}

/** A save that is on the disk. */
export interface Saved {
  readonly path: string;
  readonly sizeBytes: number;
  readonly durationMs: number;
}

/**
 * Saves one step at a time: `save` announces it, the shards send their parts in any order while training goes on, and
 * `save` is answered when the folder is durable under its final name. A save that fails leaves nothing behind, and the
 * checkpointer ready for the next. What an earlier life of the rank group began and could not finish is given up.
 */
export type CheckpointerProtocol = {
  /** The rank group lives anew: saves of earlier lives are refused from here on. */
  begin: { in: { life: number } };
  save: { in: SaveOrder; out: Saved };
  part: { in: SavePart };
  /** How far the optimizer has come after `step` steps: a save is not whole without it. */
  progress: { in: { life: number; step: number; progress: OptimizerProgress } };
};

/** What a checkpointer is born with. */
export interface CheckpointerInit {
  /** Folder of the run's checkpoints; made where it is not there. */
  readonly directory: string;
}

export default defineActor<CheckpointerProtocol, CheckpointerInit>({
  lanes: { part: "control", progress: "control" },
  concurrent: ["save"],
  async start(_context, { directory }) {
    await openDirectory(directory);
    let parts = new PartCollection(0, -1);
    const partsOf = (life: number, step: number) => {
      if (parts.life !== life || parts.step !== step) {
        parts.abandon();
        parts = new PartCollection(life, step);
      }
      return parts;
    };
    return {
      handlers: {
        begin({ life }) {
          partsOf(life, -1);
        },
        async save(order) {
          const begin = performance.now();
          const mine = partsOf(order.life, order.state.step);
          try {
            await mine.whole(order.numParts);
            const written = await writeCheckpoint(directory, contentOf(order, mine));
            return { ...written, durationMs: performance.now() - begin };
          } finally {
            mine.dispose();
          }
        },
        part(part) {
          if (part.life < parts.life) for (const { ref } of part.state) releaseRef(ref);
          else partsOf(part.life, part.step).add(part);
        },
        progress({ life, step, progress }) {
          if (life >= parts.life) partsOf(life, step).setProgress(progress);
        },
      },
    };
  },
});

async function openDirectory(directory: string): Promise<void> {
  try {
    await mkdir(directory, { recursive: true });
    await sweepLeftovers(directory);
  } catch (cause) {
    throw new TroupeError(
      "CHECKPOINT_DIRECTORY",
      `[checkpoint] expected a folder that can be written at ${directory}: got "${(cause as Error).message}" (give another with --checkpoint)`,
      { fields: { directory }, cause },
    );
  }
}

/** A stretch of a parameter's values, within a copied tensor. */
interface Stretch {
  readonly piece: Piece;
  readonly values: Tensor;
}

/** The parts of one save as they come in. Owns their tensors until disposed. */
class PartCollection {
  readonly life: number;
  readonly step: number;
  /** By kind, then by parameter. */
  readonly #stretches = new Map<string, Map<string, Stretch[]>>();
  readonly #tensors: Tensor[] = [];
  #progress: OptimizerProgress | undefined;
  #numParts = 0;
  #abandoned = false;
  #wake: (() => void) | undefined;

  constructor(life: number, step: number) {
    this.life = life;
    this.step = step;
  }

  add(part: SavePart): void {
    for (const { kind, ref, pieces } of part.state) {
      const values = hold(() => attach(ref));
      this.#tensors.push(values);
      const ofKind = this.#stretches.get(kind) ?? new Map<string, Stretch[]>();
      this.#stretches.set(kind, ofKind);
      for (const piece of pieces) {
        const { name } = piece.parameter;
        ofKind.set(name, [...(ofKind.get(name) ?? []), { piece, values }]);
      }
    }
    this.#numParts += 1;
    this.#wake?.();
  }

  /** Resolves when `numParts` have come, and how far the optimizer is. @throws {TroupeError} `CHECKPOINT_ABANDONED` when they never will */
  async whole(numParts: number): Promise<void> {
    while (this.#numParts < numParts || this.#progress === undefined) {
      if (this.#abandoned) throw abandoned(this.step);
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
  }

  /** Nobody will send the parts that are missing. */
  abandon(): void {
    this.#abandoned = true;
    this.dispose();
    this.#wake?.();
  }

  setProgress(progress: OptimizerProgress): void {
    this.#progress = progress;
    this.#wake?.();
  }

  /** How far the optimizer has come; known once the save is whole. */
  get progress(): OptimizerProgress | undefined {
    return this.#progress;
  }

  /** What the optimizer keeps, in the order of names. */
  get kinds(): string[] {
    return [...this.#stretches.keys()].filter((kind) => kind !== MASTER).sort();
  }

  /** The shape of one parameter's state; undefined where it has none of that kind. */
  shape(kind: string, parameter: string): readonly number[] | undefined {
    const held = this.#stretches.get(kind)?.get(parameter)?.[0]?.piece.parameter;
    return held?.split?.logicalShape ?? held?.shape;
  }

  /** The bytes of one parameter's state, stretch by stretch; one that is split among ranks is put together first. */
  *bytes(kind: string, parameter: string): Generator<Uint8Array> {
    const stretches = this.#stretches.get(kind)?.get(parameter) ?? [];
    if (stretches[0]?.piece.parameter.split !== undefined) {
      yield bytesOf(assembled(stretches, this.shape(kind, parameter) ?? []));
      return;
    }
    let written = 0;
    for (const stretch of stretches.sort((a, b) => a.piece.parameterBegin - b.piece.parameterBegin)) {
      const { parameterBegin, numel } = stretch.piece;
      // What several ranks keep alike is taken from the first of them.
      if (parameterBegin < written) continue;
      written = parameterBegin + numel;
      yield bytesOf(floatsOf(stretch));
    }
  }

  dispose(): void {
    for (const tensor of this.#tensors.splice(0)) tensor.dispose();
  }
}

function floatsOf({ piece, values }: Stretch): Float32Array {
  return scope(() => values.narrow(0, piece.rangeBegin, piece.numel).toTypedArray() as Float32Array);
}

/** A whole parameter's values, from pieces that lie anywhere in it. */
function assembled(stretches: readonly Stretch[], shape: readonly number[]): Float32Array {
  const whole = new Float32Array(shape.reduce((product, size) => product * size, 1));
  for (const stretch of stretches) {
    const { parameter, parameterBegin, numel } = stretch.piece;
    const floats = floatsOf(stretch);
    for (const run of logicalRuns(parameter.shape, parameter.split, parameterBegin, numel)) {
      const from = run.begin - parameterBegin;
      whole.set(floats.subarray(from, from + run.numel), run.logicalBegin);
    }
  }
  return whole;
}

function bytesOf(floats: Float32Array): Uint8Array {
  return new Uint8Array(floats.buffer, floats.byteOffset, floats.byteLength);
}

function abandoned(step: number): TroupeError {
  return new TroupeError(
    "CHECKPOINT_ABANDONED",
    `[checkpoint] expected every part of step ${step}: the rank group was restarted before they had come (the next save is whole)`,
    { fields: { step } },
  );
}

function contentOf(order: SaveOrder, collection: PartCollection) {
  const sources = (kind: string): TensorSource[] =>
    order.parameters.flatMap((name) => {
      const shape = collection.shape(kind, name);
      const read = () => asyncOf(collection.bytes(kind, name));
      return shape === undefined ? [] : { name: entryName(kind, name), dtype: "F32", shape, read };
    });
  return {
    state: { ...order.state, optimizer: (collection.progress ?? null) as JsonValue },
    config: order.modelConfig,
    weights: sources(MASTER),
    optimizer: collection.kinds.flatMap(sources),
  };
}

async function* asyncOf(parts: Iterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  yield* parts;
}
