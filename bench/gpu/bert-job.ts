import { AdamW, type Dataset, defineJob, ops, type Tensor } from "troupe";
import { BertForMaskedLM } from "troupe/models";

const MASK = 103;
const SHARE_MASKED = 0.15;

/** BERT base that fills gaps in random text: the work of peer.py with `--model bert`. */
export default defineJob({
  config: { batch: 32, seq: 512, steps: 20, lr: 1e-4, layers: 12, dim: 768, heads: 12, vocab: 30522 },
  training: ({ steps, batch }) => ({ steps, batchSize: batch, clipNorm: 1 }),
  data: ({ seq, vocab }, { seed }): Dataset<GapsBatch> => ({
    facts: { source: "random tokens", vocabSize: vocab },
    splits: { train: { numSamples: Number.POSITIVE_INFINITY } },
    batch: (_split, position, numSamples) => gaps(vocab, [numSamples, seq], seed, position),
    countTokens: ({ labels }) => labels.numel,
  }),
  model: ({ seq, vocab, layers, dim, heads }) =>
    new BertForMaskedLM({
      vocab_size: vocab,
      num_hidden_layers: layers,
      hidden_size: dim,
      intermediate_size: 4 * dim,
      num_attention_heads: heads,
      max_position_embeddings: seq,
      hidden_dropout_prob: 0,
      attention_probs_dropout_prob: 0,
    }),
  loss: (model, batch) => model.forward(batch).loss as Tensor,
  optimizer: (parameters, { lr }) =>
    new AdamW(parameters, { lr, betas: [0.9, 0.95], weightDecay: 0.1, decay: "every parameter" }),
});

// A type, not an interface: only those fit a batch's index signature.
type GapsBatch = { readonly inputIds: Tensor; readonly labels: Tensor };

function gaps(
  vocabSize: number,
  shape: readonly [number, number],
  seed: number,
  position: number,
): GapsBatch {
  const uniform = (to: number, stream: number) => {
    const drawn = ops.zeros([...shape]);
    ops.troupe.philoxUniform_(drawn, 0, to, seed, stream, position * shape[1]);
    return drawn;
  };
  const ids = uniform(vocabSize, 0).to("int64"); // [samples, length]
  const chosen = uniform(1, 1).lt(SHARE_MASKED); // [samples, length]
  return { inputIds: ids.maskedFill(chosen, MASK), labels: ids.maskedFill(chosen.logicalNot(), -100) };
}
