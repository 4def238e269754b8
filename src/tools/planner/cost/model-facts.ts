import * as nn from "../../../compute/nn/index.ts";
import { cutDims, type LayoutFacts, tensorDivisors, traceUse } from "../../../compute/parallel/index.ts";
import { scope } from "../../../compute/tensor/index.ts";
import { type ModelTrace, type PlannedModel, type TraceOptions, traceModel } from "./model-trace.ts";

/** A parameter as declared, and its split by tensor parallelism. */
export interface DeclaredParameter extends nn.ParameterSpec {
  /** The dim that is split; undefined where every rank has the complete parameter. */
  readonly tpDim: number | undefined;
}

/** A parameter outside the blocks. Each stage that uses it has a copy. */
export interface RootParameter {
  readonly parameter: DeclaredParameter;
  /** How many blocks had been called at each use, without duplicates. */
  readonly uses: readonly number[];
}

/** Facts about a model for the planner, found by running it on tensors without memory. */
export interface ModelFacts {
  /** In the order of declaration. */
  readonly blocks: readonly { readonly name: string; readonly parameters: readonly DeclaredParameter[] }[];
  readonly root: readonly RootParameter[];
  /** Indices of blocks, in the order in which forward calls them. */
  readonly calls: readonly number[];
  readonly layout: LayoutFacts;
  /** Per sample, if the model has tokens. */
  readonly tokensPerSample: number | undefined;
  /** FLOPs per sample, forward and backward, without recomputation, as for utilization. */
  readonly flopsPerSample: number;
  /** Traces a micro-batch; cached for equal options. */
  trace(options: TraceOptions): ModelTrace;
}

/** Runs a model on tensors without memory and collects facts; allocates nothing. @throws {TroupeError} errors of the model */
export function factsOf(planned: PlannedModel): ModelFacts {
  const model = planned.build();
  nn.bindRandomness(model, new nn.Randomness(0));
  const cut = nn.cutBlocks(model);
  const plan = planned.tensorPlan;
  const tpDims = cutDims(model, plan ?? {});
  const declared = (name: string, parameter: nn.Parameter): DeclaredParameter => {
    const { shape, dtype, init } = parameter;
    return { name, shape, dtype, init, tpDim: tpDims.get(parameter) };
  };
  const modules = cut.blocks.map(({ module }) => module);
  const { calls, rootUse } = traceUse(model, modules, cut.rest.values(), () =>
    planned.loss(model, planned.someSamples),
  );
  const traces = new Map<string, ModelTrace>();
  const trace = (options: TraceOptions): ModelTrace => {
    const key = JSON.stringify(options);
    const made = traces.get(key) ?? scope(() => traceModel(planned, options));
    traces.set(key, made);
    return made;
  };
  return {
    blocks: cut.blocks.map(({ name, parameters }) => ({
      name,
      parameters: [...parameters].map(([path, parameter]) => declared(path, parameter)),
    })),
    root: [...cut.rest].map(([path, parameter]) => ({
      parameter: declared(path, parameter),
      uses: [...(rootUse.get(parameter) ?? [])],
    })),
    calls,
    layout: {
      numBlocks: calls.length,
      dividedByTp: plan === undefined ? { "model without a tensor plan": 1 } : tensorDivisors(model, plan),
      numExperts: 0,
    },
    tokensPerSample: planned.tokensPerSample,
    get flopsPerSample() {
      const numSamples = planned.someSamples;
      const alone = { tp: 1, sequenceParallel: false, recompute: false, autocast: undefined } as const;
      const options = { ...alone, numSamples, dtype: "float32", device: "cpu" } as const;
      const flops = trace(options).calls.map(({ forward, backward }) => forward.flops + backward.flops);
      return flops.reduce((sum, each) => sum + each, 0) / numSamples;
    },
    trace,
  };
}
