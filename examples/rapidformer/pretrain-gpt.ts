// The original's MegatronGPTPreTrainer without hubs: data, model and loss are this file's own.

import { GPT2LMHeadModel, type Tensor } from "troupe";
import {
  buildTrainValidTestDatasets,
  getArgs,
  PreTrainer,
  paddedVocabulary,
  RapidformerEngine,
} from "troupe/rapidformer";

class MyGPTPreTrainer extends PreTrainer {
  override trainValidTestDatasetsProvider(trainValTestNumSamples: readonly [number, number, number]) {
    const args = getArgs();
    return buildTrainValidTestDatasets({
      dataPrefix: args.dataPath,
      dataImpl: args.dataImpl,
      splitsString: args.split,
      trainValidTestNumSamples: trainValTestNumSamples,
      seqLength: args.seqLength,
      seed: args.seed,
      skipWarmup: !args.mmapWarmup,
    });
  }

  override modelOptimizerLrSchedulerProvider() {
    const args = getArgs();
    const model = new GPT2LMHeadModel({
      vocab_size: paddedVocabulary(257, args), // bytes and the end of a document
      n_layer: args.numLayers,
      n_embd: args.hiddenSize,
      n_head: args.numAttentionHeads,
      n_positions: args.maxPositionEmbeddings,
    });
    return [model, null, null] as const;
  }

  override runForwardStep(dataIterator: Iterator<{ readonly text: Tensor }>, model: GPT2LMHeadModel) {
    const { text } = dataIterator.next().value as { readonly text: Tensor };
    const length = (text.shape[1] ?? 1) - 1;
    const tokens = text.narrow(1, 0, length).contiguous();
    const labels = text.narrow(1, 1, length).contiguous();
    return model.forward(tokens, { targets: labels }).loss;
  }
}

const engine = new RapidformerEngine();
const trainer = new MyGPTPreTrainer(engine);
export default trainer.train();
