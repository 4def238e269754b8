// A job whose blocks freeze a bias of their own while they run: where parameters are paged, only then are they there.
import { defineJob } from "troupe";
import { type Config, type Points, parts } from "../../fixtures/jobs/thawing.ts";
import { isFrozen, Ladder } from "../../fixtures/thawing.ts";

const steps = new WeakMap<Ladder, number>();

export default defineJob<Config, Points, Ladder, { source: string }>({
  ...parts,
  model: ({ frozen }) => {
    const model = new Ladder("");
    for (const [index, { up }] of [...model.rungs].entries()) {
      const forward = up.forward.bind(up);
      up.forward = (x) => {
        const { bias } = up;
        if (bias !== null)
          bias.trainable = !isFrozen(frozen, `rungs.${index}.up.bias`, steps.get(model) ?? 0);
        return forward(x);
      };
    }
    return model;
  },
  loss: (model, { points, wanted }, rank) => {
    steps.set(model, rank.numSteps);
    return model.lossOf(points, wanted);
  },
});
