import {
  type ActivationName,
  activations,
  Linear,
  Module,
  planTest,
  type TensorPlan,
  zeros,
} from "../nn/index.ts";
import type { Tensor } from "../tensor/index.ts";
import { type Delta, deltaOption, deltaTarget } from "./delta.ts";
import { headsOf, peftTask } from "./family.ts";
import { affineTargets, liesIn, type Target } from "./target.ts";

/** What adapters may be told. */
export interface AdapterOptions {
  /**
   * Behind which maps they stand: "houlsby", the last ones of every attention and every feed-forward half, or "pfeiffer", those
   * of feed-forward halves alone; as the model's tensor plan says which these are. "houlsby" unless told otherwise.
   */
  readonly kind?: "houlsby" | "pfeiffer";
  /** The maps themselves, by name, in place of a kind. */
  readonly target?: Target;
  /** Of the narrow middle; 24 unless told otherwise. */
  readonly width?: number;
  /** In the narrow middle; gelu_new unless told otherwise. */
  readonly activation?: ActivationName;
  /** Modules of the model's own that are trained and saved whole; the new head of the model's task unless told otherwise. */
  readonly modulesToSave?: readonly string[] | undefined;
  /** A folder whose values they begin with. */
  readonly folder?: string | undefined;
}

/** y + up(activation(down(y))): narrow in the middle, and y itself as long as nothing is trained. */
class Bottleneck extends Module {
  readonly down_proj: Linear;
  readonly up_proj: Linear;
  readonly activation: ActivationName;

  constructor(numFeatures: number, width: number, activation: ActivationName) {
    super();
    this.down_proj = new Linear(numFeatures, width);
    this.up_proj = new Linear(width, numFeatures, { init: zeros, biasInit: zeros });
    this.activation = activation;
  }

  override forward(y: Tensor): Tensor {
    return y.add(this.up_proj.forward(activations[this.activation](this.down_proj.forward(y))));
  }
}

/**
 * Narrow layers behind the halves of a transformer's layers, which alone are trained. peft has no such kind: what is saved, by the
 * same rule of names, is read here.
 * @throws {TroupeError} `DELTA_OPTION`
 * @see Houlsby et al. 2019, https://arxiv.org/abs/1902.00751; Pfeiffer et al. 2020, https://arxiv.org/abs/2005.00247
 */
export function adapter(options: AdapterOptions = {}): Delta {
  const { kind = "houlsby", width = 24, activation = "gelu_new", folder } = options;
  if (!Number.isSafeInteger(width) || width < 1) throw deltaOption("width", "a whole number ≥ 1", width);
  if (kind !== "houlsby" && kind !== "pfeiffer") throw deltaOption("kind", "houlsby or pfeiffer", kind);
  if (!(activation in activations)) throw deltaOption("activation", "one of this library", activation);
  const targetOf = (model: Module) => options.target ?? halfEnds(model, kind);
  const savedOf = (model: Module) => options.modulesToSave ?? headsOf(model);
  return {
    peftType: "BOTTLENECK",
    folder,
    attach: (model) => {
      const maps = affineTargets(model, { target: targetOf(model), saved: savedOf(model) });
      for (const [name, map] of maps) {
        if (map.behind !== undefined) throw deltaTarget(`one delta behind ${name}`, "two");
        const { weight, outputDim } = map;
        const bottleneck = new Bottleneck(weight.shape[outputDim] ?? 0, width, activation).train(
          map.training,
        );
        Object.assign(map, { adapter: bottleneck }); // a module's name is its property's
        map.behind = bottleneck;
      }
    },
    trains: (name, model) => liesIn(name, savedOf(model)),
    configJson: (model) => {
      const target = targetOf(model);
      return {
        peft_type: "BOTTLENECK",
        task_type: peftTask(model),
        bottleneck_dim: width,
        non_linearity: activation,
        target_modules: target instanceof RegExp ? target.source : target,
        modules_to_save: savedOf(model),
      };
    },
  };
}

/** Names of the maps with which halves of layers end: those that a tensor plan splits by inputs. */
function halfEnds(model: Module, kind: "houlsby" | "pfeiffer"): readonly string[] {
  const { tensorPlan = {} } = model as { readonly tensorPlan?: TensorPlan };
  const rows = Object.entries(tensorPlan).flatMap(([pattern, rule]) =>
    rule.kind === "row" ? planTest(pattern) : [],
  );
  const names = [...model.namedModules().keys()].filter((name) => rows.some((test) => test(name)));
  const meant = kind === "houlsby" ? names : names.filter((name) => !/attn|attention/i.test(name));
  if (meant.length > 0) return meant;
  throw deltaTarget(
    "a tensor plan that says where halves of layers end",
    `none, of ${model.constructor.name}`,
    "name the target",
  );
}
