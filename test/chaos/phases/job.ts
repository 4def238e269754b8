// The tiny GPT, struck in the phases in which a job's own code runs.
import { type Batch, defineJob, type Module } from "troupe";
import tiny from "../../fixtures/jobs/tiny.ts";
import { reach } from "./strike.ts";

export default defineJob<typeof tiny.config, Batch, Module>({
  ...tiny,
  async data(config, context) {
    const dataset = await tiny.data(config, context);
    return {
      ...dataset,
      batch(split, position, numSamples) {
        if (split === "train") reach("data");
        return dataset.batch(split, position, numSamples);
      },
    };
  },
  model(config, facts) {
    reach("spawn");
    return tiny.model(config, facts);
  },
  loss(model, batch, rank) {
    reach("forward");
    return tiny.loss(model, batch, rank);
  },
});
