import type { Affine, MixtureOptions, Module } from "../../compute/nn/index.ts";
import type { FairseqForm } from "./formats/fairseq.ts";
import type { GgufForm } from "./formats/gguf.ts";
import type { MegatronForm } from "./formats/megatron.ts";
import type { ModelCenterForm } from "./formats/model-center.ts";
import type { NeoXForm } from "./formats/neox.ts";
import type { Task, TaskModel } from "./task-model.ts";

type Fields = Readonly<Record<string, unknown>>;

/** A class of models with the head of a task, declared by the fields of a config.json. @throws {TroupeError} `MODEL_CONFIG` */
type TaskModelClass = new (fields: Fields) => TaskModel;

/**
 * Everything that Troupe knows about a family of models, in one card in the family's folder. All other code uses the cards and
 * names no family.
 */
export interface Family<Config = unknown> {
  /** The `model_type` of its config.json. */
  readonly modelType: string;
  /** Completes given fields with the family's defaults and checks them. @throws {TroupeError} `MODEL_CONFIG` */
  config(given: Fields): Config;
  /** The class for each task. */
  readonly heads: Readonly<Partial<Record<Task, TaskModelClass>>>;
  /** Tasks of architectures whose names do not follow `For` and the usual end. */
  readonly architectures?: Readonly<Record<string, Task>>;
  /** Names in config.json of sizes and rates that Rapidformer's flags set. Default: those of encoders. */
  readonly sizes?: SizeNames;
  /** How texts become rows of tokens. Default: without tokens around them. */
  readonly texts?: TextForm;
  /** Whether samples can be packed into one row. Default: no. */
  readonly packs?: boolean;
  /** Whether it is pre-trained on spans that sentinels replace. Default: no. */
  readonly fillsSpans?: boolean;
  /** Its causal model with experts instead of feed-forward layers, if any. @throws {TroupeError} `MODEL_CONFIG` */
  withExperts?(fields: Fields, experts: ExpertConfig): Module;
  /** How deltas fit it, as in peft. */
  readonly deltas?: FamilyDeltas;
  /** Names of its weights in other programs. Modules are imported only for a conversion. */
  readonly formats?: FamilyFormats<Config>;
}

/** Names of fields: several if one flag sets all of them, none if the family lacks the field. */
export type SizeNames = Readonly<
  Partial<
    Record<
      | ("numLayers" | "hiddenSize" | "numAttentionHeads" | "maxPositionEmbeddings" | "ffnHiddenSize")
      | ("attentionDropout" | "hiddenDropout" | "layernormEpsilon" | "initMethodStd")
      /** The width of a head, if it is a field. Default: hiddenSize / numAttentionHeads. */
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
  /** The token that masks another. Default: `[MASK]`. */
  readonly mask?: string;
  /** Maximum number of tokens in a row. @param positions - of config.json, or Infinity. Default: `positions` */
  maxTokens?(positions: number, config: Fields): number;
}

/** Experts in every layer, and the weight of their auxiliary losses. */
export interface ExpertConfig {
  readonly numExperts: number;
  /** Weight of the auxiliary losses, summed over the layers, in the loss. Default: 0.01. */
  readonly auxiliaryWeight?: number;
  /** Whether a dense layer is added to the experts: residual MoE. Default: false. */
  readonly residual?: boolean;
  /** How tokens are routed. */
  readonly mixture?: Omit<MixtureOptions, "residual" | "init">;
}

/** How deltas fit a family. */
export interface FamilyDeltas {
  /** LoRA's default target maps. */
  readonly lora?: readonly string[];
  /** (IA)³'s default target maps, and those whose inputs are rescaled. */
  readonly ia3?: { readonly target: readonly string[]; readonly feedForward: readonly string[] };
  /** The attentions of a model that can have a prefix; undefined if it has none of this family's. */
  prefix?(model: Module): PrefixedStack | undefined;
  /** The encoder of an encoder-decoder; undefined for a model of another family. */
  reader?(model: Module): Reader | undefined;
}

/** A stack whose keys and values can have a prefix. */
export interface PrefixedStack {
  /** The module whose positions count from the end of the prefix. */
  readonly stack: Module;
  /** Name in a batch of the mask of its rows. */
  readonly maskName: string;
  readonly maxPositions: number;
  /** One per layer. */
  readonly attentions: readonly PrefixedAttention[];
}

/** A self-attention and the map that computes its keys, together with queries and values if `parts` is 3. */
export interface PrefixedAttention {
  readonly attention: Module & { readonly headWidth: number };
  readonly map: Affine;
  readonly parts: number;
}

/** The encoder of an encoder-decoder. */
export interface Reader {
  readonly stack: Module;
  /** Features of a word. */
  readonly width: number;
  /** Whether both stacks share one embedding. */
  readonly sharesWords: boolean;
}

/** The default export of a module of the family's folder. */
type Later<Form> = () => Promise<{ readonly default: Form }>;

/** Modules of the family's folder, by program. */
export interface FamilyFormats<Config = unknown> {
  readonly modelCenter?: Later<ModelCenterForm<Config>>;
  readonly megatron?: Later<MegatronForm>;
  readonly fairseq?: Later<FairseqForm>;
  readonly neox?: Later<NeoXForm>;
  readonly gguf?: Later<GgufForm<Config>>;
}

const known = new Map<string, Family>();

/** All known families, in the order of definition; {@link defineFamily} adds to them. */
export function families(): Family[] {
  return [...known.values()];
}

/**
 * Makes a family known in this thread: to `autoModel`, deltas, tasks, Rapidformer's jobs and conversions. A second card for a
 * `model_type` replaces the first.
 */
export function defineFamily<Config>(card: Family<Config>): Family<Config> {
  known.set(card.modelType, card);
  return card;
}

/** The family of a config.json; undefined if it is unknown. */
export function familyOf({ model_type: type }: Fields): Family | undefined {
  return typeof type === "string" ? known.get(type) : undefined;
}
