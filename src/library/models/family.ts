import type { Affine, MixtureOptions, Module } from "../../compute/nn/index.ts";
import type { FairseqForm } from "./formats/fairseq.ts";
import type { MegatronForm } from "./formats/megatron.ts";
import type { ModelCenterForm } from "./formats/model-center.ts";
import type { NeoXForm } from "./formats/neox.ts";
import type { Task, TaskModel } from "./task-model.ts";

type Fields = Readonly<Record<string, unknown>>;

/** A class of models with the head of a task, declared by the fields of a config.json. @throws {TroupeError} `MODEL_CONFIG` */
type TaskModelClass = new (fields: Fields) => TaskModel;

/**
 * All that Troupe knows of a family of models: one card, which lies in the family's folder. Everything else goes through the cards and
 * names no family.
 */
export interface Family<Config = unknown> {
  /** The `model_type` of its config.json. */
  readonly modelType: string;
  /** Completes given fields with the family's defaults and checks them. @throws {TroupeError} `MODEL_CONFIG` */
  config(given: Fields): Config;
  /** The class for each task. */
  readonly heads: Readonly<Partial<Record<Task, TaskModelClass>>>;
  /** Tasks of architectures whose names say it otherwise than by `For` and a common end. */
  readonly architectures?: Readonly<Record<string, Task>>;
  /** Names in its config.json of the sizes and rates that Rapidformer's flags may say. Default: those of encoders. */
  readonly sizes?: SizeNames;
  /** How texts become rows of its tokens. Default: nothing stands around them. */
  readonly texts?: TextForm;
  /** Whether samples can share a row of it without attending to each other. Default: no. */
  readonly packs?: boolean;
  /** Whether it is pre-trained on spans that sentinels stand for. Default: no. */
  readonly fillsSpans?: boolean;
  /** Its causal model with experts in place of the feed-forward layers, if it has one. @throws {TroupeError} `MODEL_CONFIG` */
  withExperts?(fields: Fields, experts: ExpertConfig): Module;
  /** How deltas fit it, as peft has it. */
  readonly deltas?: FamilyDeltas;
  /** How other programs name its weights. Each is imported when a model is converted, and no sooner. */
  readonly formats?: FamilyFormats<Config>;
}

/** Names of fields, several where one flag says all of them; none where a family has no such field. */
export type SizeNames = Readonly<
  Partial<
    Record<
      | ("numLayers" | "hiddenSize" | "numAttentionHeads" | "maxPositionEmbeddings" | "ffnHiddenSize")
      | ("attentionDropout" | "hiddenDropout" | "layernormEpsilon" | "initMethodStd")
      /** The width of a head, where it is a field: hiddenSize / numAttentionHeads unless the config.json says it. */
      | "headWidth",
      readonly string[]
    >
  >
>;

/** The tokens that a family puts around texts, and how many it reads. */
export interface TextForm {
  readonly begin: readonly string[];
  readonly between: readonly string[];
  readonly end: readonly string[];
  /** The token that hides another. Default: `[MASK]`. */
  readonly mask?: string;
  /** How many tokens a row may have. @param positions - as its config.json says, or Infinity. Default: as many */
  maxTokens?(positions: number, config: Fields): number;
}

/** Experts in every layer, and the weight of their auxiliary losses. */
export interface ExpertConfig {
  readonly numExperts: number;
  /** Weight of the auxiliary losses, summed over the layers, in the loss. Default: 0.01. */
  readonly auxiliaryWeight?: number;
  /** Whether a dense layer answers beside the experts: residual MoE. Default: false. */
  readonly residual?: boolean;
  /** How tokens are dealt. */
  readonly mixture?: Omit<MixtureOptions, "residual" | "init">;
}

/** How deltas fit a family. */
export interface FamilyDeltas {
  /** Names of the maps that LoRA tunes where nothing else is said. */
  readonly lora?: readonly string[];
  /** Names of the maps that (IA)³ rescales where nothing else is said, and of those that it rescales before the product. */
  readonly ia3?: { readonly target: readonly string[]; readonly feedForward: readonly string[] };
  /** The attentions of a model that a prefix may stand in front of; undefined where it has none of this family's. */
  prefix?(model: Module): PrefixedStack | undefined;
  /** The part of a model of two stacks that reads the words; undefined where the model is none of this family's. */
  reader?(model: Module): Reader | undefined;
}

/** A stack in front of whose keys and values others may stand. */
export interface PrefixedStack {
  /** Counts its positions from the prefix on. */
  readonly stack: Module;
  /** The mask of its own rows, by its name in a batch. */
  readonly maskName: string;
  readonly maxPositions: number;
  /** One a layer. */
  readonly attentions: readonly PrefixedAttention[];
}

/** An attention over its own stream, and the map that makes its keys, beside queries and values where `parts` is 3. */
export interface PrefixedAttention {
  readonly attention: Module & { readonly headWidth: number };
  readonly map: Affine;
  readonly parts: number;
}

/** The encoder of a model of two stacks. */
export interface Reader {
  readonly stack: Module;
  /** Features of a word. */
  readonly width: number;
  /** Whether both stacks have the same words. */
  readonly sharesWords: boolean;
}

/** The default export of a module of the family's folder. */
type Later<Form> = () => Promise<{ readonly default: Form }>;

/** Modules of the family's folder, by the program that they are about. */
export interface FamilyFormats<Config = unknown> {
  readonly modelCenter?: Later<ModelCenterForm<Config>>;
  readonly megatron?: Later<MegatronForm>;
  readonly fairseq?: Later<FairseqForm>;
  readonly neox?: Later<NeoXForm>;
}

const known = new Map<string, Family>();

/** All families that are known, in the order of their definition; {@link defineFamily} adds to them. */
export function families(): Family[] {
  return [...known.values()];
}

/**
 * Makes a family known in this thread: to `autoModel`, deltas, tasks, Rapidformer's jobs and conversions. A second card of a
 * `model_type` takes the place of the first.
 */
export function defineFamily<Config>(card: Family<Config>): Family<Config> {
  known.set(card.modelType, card);
  return card;
}

/** The family that a config.json names; undefined for one that is not known. */
export function familyOf({ model_type: type }: Fields): Family | undefined {
  return typeof type === "string" ? known.get(type) : undefined;
}
