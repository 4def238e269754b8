import * as nn from "../../compute/nn/index.ts";
import type { Tensor } from "../../compute/tensor/index.ts";
import { type CommonDeltaOptions, type Delta, deltaOption, deltaTarget } from "./delta.ts";
import { headsOf, peftTask } from "./family.ts";
import { affineTargets, liesIn, type Target } from "./target.ts";

/** Options of {@link adapter}. */
export interface AdapterOptions extends CommonDeltaOptions {
  /**
   * Maps that get an adapter behind them: "houlsby", the last map of every attention and feed-forward block, or "pfeiffer", of
   * feed-forward blocks only, as the model's tensor plan marks them. Default: "houlsby".
   */
  readonly kind?: "houlsby" | "pfeiffer";
  /** Names of the maps, instead of a kind. */
  readonly target?: Target;
  /** Bottleneck width. Default: 24. */
  readonly width?: number;
  /** Activation in the bottleneck. Default: gelu_new. */
  readonly activation?: nn.ActivationName;
}

/** y + up(activation(down(y))): a bottleneck that starts as the identity. */
class Bottleneck extends nn.Module {
  readonly down_proj: nn.Linear;
  readonly up_proj: nn.Linear;
  readonly activation: nn.ActivationName;

  constructor(numFeatures: number, width: number, activation: nn.ActivationName) {
    super();
    this.down_proj = new nn.Linear(numFeatures, width);
    this.up_proj = new nn.Linear(width, numFeatures, { init: nn.zeros, biasInit: nn.zeros });
    this.activation = activation;
  }

  override forward(y: Tensor): Tensor {
    return y.add(this.up_proj.forward(nn.activations[this.activation](this.down_proj.forward(y))));
  }
}

/**
 * Bottleneck adapters behind attention and feed-forward blocks; only they are trained. peft has no such kind: they are saved by its
 * naming rules, but only Troupe reads them.
 * @throws {TroupeError} `DELTA_OPTION`
 * @see Houlsby et al. 2019, https://arxiv.org/abs/1902.00751; Pfeiffer et al. 2020, https://arxiv.org/abs/2005.00247
 */
export function adapter(options: AdapterOptions = {}): Delta {
  const { kind = "houlsby", width = 24, activation = "gelu_new", folder } = options;
  if (!Number.isSafeInteger(width) || width < 1) throw deltaOption("width", "a whole number ≥ 1", width);
  if (kind !== "houlsby" && kind !== "pfeiffer") throw deltaOption("kind", "houlsby or pfeiffer", kind);
  if (!Object.hasOwn(nn.activations, activation))
    throw deltaOption("activation", "one of this library", activation);
  const targetOf = (model: nn.Module) => options.target ?? halfEnds(model, kind);
  const savedOf = (model: nn.Module) => options.modulesToSave ?? headsOf(model);
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
        Object.assign(map, { adapter: bottleneck }); // modules are named by their property
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

/** Names of the last maps of attention and feed-forward blocks: those that a tensor plan splits by inputs. */
function halfEnds(model: nn.Module, kind: "houlsby" | "pfeiffer"): readonly string[] {
  const { tensorPlan = {} } = model as { readonly tensorPlan?: nn.TensorPlan };
  const rows = Object.entries(tensorPlan).flatMap(([pattern, rule]) =>
    rule.kind === "row" ? nn.planTest(pattern) : [],
  );
  const names = [...model.namedModules().keys()].filter((name) => rows.some((test) => test(name)));
  const meant = kind === "houlsby" ? names : names.filter((name) => !/attn|attention/i.test(name));
  if (meant.length > 0) return meant;
  throw deltaTarget(
    "a tensor plan that marks the last maps of blocks",
    `none, of ${model.constructor.name}`,
    "name the target",
  );
}
