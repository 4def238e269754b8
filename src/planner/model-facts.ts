import type { GPT2Config } from "../models/index.ts";
import {
  cutBlocks,
  type Module,
  type Parameter,
  type ParameterSpec,
  type TensorSplittable,
} from "../nn/index.ts";
import { cutDims, expertCounts, type LayoutFacts } from "../parallel/index.ts";

/** A parameter as declared, and how tensor parallelism would cut it. */
export interface DeclaredParameter extends ParameterSpec {
  /** The dim that is cut; undefined where every rank has the whole. */
  readonly tpDim: number | undefined;
}

/** Where along the pipeline a parameter outside the blocks is used. */
export type RootUse = "first" | "last";

/** A parameter outside the blocks. Tied ones are used at both ends, and kept at both. */
export interface RootParameter {
  readonly parameter: DeclaredParameter;
  readonly uses: readonly RootUse[];
}

/** The sizes of a GPT that its computation depends on. */
export interface GptShape {
  readonly numLayers: number;
  /** Width of the residual stream. */
  readonly width: number;
  readonly numHeads: number;
  /** Width of the feed-forward layer. */
  readonly innerWidth: number;
  /** Tokens, padded to what the vocabulary's split asks for. */
  readonly vocabulary: number;
  /** Longest context. */
  readonly numPositions: number;
}

/** What the planner must know of a model. */
export interface ModelFacts {
  readonly shape: GptShape;
  /** In forward order. */
  readonly blocks: readonly { readonly name: string; readonly parameters: readonly DeclaredParameter[] }[];
  readonly root: readonly RootParameter[];
}

/** A model that can be planned: it says its sizes as GPT-2 does, and how it is split where it can be. */
type GptModule = Module & Partial<TensorSplittable> & { readonly config: GPT2Config };

/** @returns whether {@link factsOf} can read the model's sizes; experts are not planned for */
export function isGpt(model: Module): model is GptModule {
  const { config } = model as { readonly config?: Partial<GPT2Config> };
  const hasSizes = typeof config?.n_embd === "number" && typeof config.n_layer === "number";
  return hasSizes && expertCounts(model).length === 0;
}

/** Reads the facts off a declared GPT; nothing is allocated. */
export function factsOf(model: GptModule): ModelFacts {
  const { config } = model;
  const cut = cutBlocks(model);
  const tpDims = cutDims(model, model.tensorPlan ?? {});
  const declared = (name: string, parameter: Parameter): DeclaredParameter => {
    const { shape, dtype, init } = parameter;
    return { name, shape, dtype, init, tpDim: tpDims.get(parameter) };
  };
  return {
    shape: {
      numLayers: config.n_layer,
      width: config.n_embd,
      numHeads: config.n_head,
      innerWidth: config.n_inner ?? 4 * config.n_embd,
      vocabulary: config.vocab_size,
      numPositions: config.n_positions,
    },
    blocks: cut.blocks.map(({ name, parameters }) => ({
      name,
      parameters: [...parameters].map(([path, parameter]) => declared(path, parameter)),
    })),
    root: [...cut.rest].map(([path, parameter]) => ({
      parameter: declared(path, parameter),
      uses: usesOf(path, config.tie_word_embeddings),
    })),
  };
}

/** @returns what decides which layouts work */
export function layoutFactsOf(facts: ModelFacts): LayoutFacts {
  const { numHeads, innerWidth } = facts.shape;
  return {
    numBlocks: facts.blocks.length,
    dividedByTp: { heads: numHeads, "inner width": innerWidth },
    numExperts: 0,
  };
}

function usesOf(name: string, tied: boolean): RootUse[] {
  if (name.endsWith("wte.weight")) return tied ? ["first", "last"] : ["first"];
  return name.endsWith("wpe.weight") ? ["first"] : ["last"];
}
