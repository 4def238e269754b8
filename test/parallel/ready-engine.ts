import { BlockEngine, type BlockPlan, type EngineOptions } from "../../src/compute/parallel/index.ts";
import { keep, scope, type Tensor, zeros } from "../../src/compute/tensor/index.ts";

/** Options of the engine: its parameters, and the use of its gradients. */
export interface ReadyOptions
  extends Partial<Pick<EngineOptions, "dtype" | "paged" | "randomness" | "programs" | "fast">> {
  /** By parameter name, still the caller's; zeros unless given. */
  readonly values?: ReadonlyMap<string, Tensor>;
  /** Hears of each block's gradient of the step, by parameter name. */
  readonly onReduced?: (block: string, gradients: ReadonlyMap<string, number[]>) => void;
}

/** An engine, bound, with a shard that answers at once. */
export function readyEngine(plan: BlockPlan, options: ReadyOptions = {}): BlockEngine<number> {
  const {
    dtype = "float32",
    paged = [],
    randomness,
    programs = false,
    fast = false,
    values = new Map(),
    onReduced = () => {},
  } = options;
  const port = {
    start: (block: number) => block,
    wait: () => {},
    release: () => {},
    reduce: (block: number, flat: Tensor) => {
      const { name = "", parameters = [] } = plan.layouts[block] ?? {};
      const gradients = scope(() => {
        // An array of bfloat16 has bits instead of numbers.
        const all = flat.dtype === "bfloat16" ? flat.to("float32") : flat;
        return parameters.map(({ name, offset, numel }): [string, number[]] => [
          name,
          Array.from(all.narrow(0, offset, numel).toTypedArray(), Number),
        ]);
      });
      flat.dispose();
      onReduced(name, new Map(gradients));
    },
  };
  const engine = new BlockEngine<number>(plan, port, {
    dtype,
    paged,
    randomness,
    programs,
    fast,
    prefetchBytes: 0,
  });
  engine.bind(
    plan.layouts.map((layout) => {
      const full = keep(zeros([layout.numel], { dtype }));
      scope(() => {
        for (const { name, offset, numel } of layout.parameters) {
          const value = values.get(name);
          if (value !== undefined) full.narrow(0, offset, numel).copy_(value.detach().view([numel]));
        }
      });
      return full;
    }),
  );
  return engine;
}
