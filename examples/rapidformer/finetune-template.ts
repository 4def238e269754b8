// The original's MyFinetuner on MRPC, hook by hook.
import { join } from "node:path";
import { loadTokenizer, ops, readTable, type Tensor, tensor } from "troupe";
import { BertForSequenceClassification } from "troupe/models";
import { Finetuner, getArgs, RapidformerEngine, readModelConfig } from "troupe/rapidformer";

interface Example {
  readonly ids: readonly number[];
  readonly types: readonly number[];
  readonly label: number;
}

type Rows = {
  readonly inputIds: Tensor;
  readonly attentionMask: Tensor;
  readonly tokenTypeIds: Tensor;
  readonly labels: Tensor;
};

class MyFinetuner extends Finetuner {
  override async trainValidTestDatasetsProvider() {
    const args = getArgs();
    const tokenizer = await loadTokenizer(args.load);
    const [begin = 0, separate = 0] = ["[CLS]", "[SEP]"].map((token) => tokenizer.encode(token)[0]);
    const tokenize = async (split: string): Promise<Example[]> =>
      (await readTable(join(args.dataPath, `${split}.tsv`))).map(({ label, sentence1, sentence2 }) => {
        const first = [begin, ...tokenizer.encode(String(sentence1)), separate];
        const second = [...tokenizer.encode(String(sentence2)), separate];
        return {
          ids: [...first, ...second],
          types: [...first.map(() => 0), ...second.map(() => 1)],
          label: Number(label),
        };
      });

    // padding="longest"
    const collate = (examples: readonly Example[]): Rows => {
      const longest = Math.max(...examples.map(({ ids }) => ids.length));
      const padded = (valuesOf: (example: Example) => readonly number[]) => {
        const rows = examples.map((example) =>
          Array.from({ length: longest }, (_, place) => valuesOf(example)[place] ?? 0),
        );
        return tensor(rows.flat(), { dtype: "int64", shape: [examples.length, longest] });
      };
      return {
        inputIds: padded(({ ids }) => ids),
        attentionMask: padded(({ ids }) => ids.map(() => 1)),
        tokenTypeIds: padded(({ types }) => types),
        labels: tensor(
          examples.map(({ label }) => label),
          { dtype: "int64" },
        ),
      };
    };
    return [await tokenize("train"), await tokenize("validation"), null, collate] as const;
  }

  override modelOptimizerLrSchedulerProvider() {
    const args = getArgs();
    return [new BertForSequenceClassification(readModelConfig(args.load)), null, null] as const;
  }

  override runForwardStep(batch: Rows, model: BertForSequenceClassification) {
    return model.forward(batch).loss as Tensor;
  }

  // After each epoch, on the held-out data.
  override runComputeMetrics(
    [model]: readonly [BertForSequenceClassification],
    evalDataloader: Iterable<Rows>,
  ) {
    let [right, all] = [0, 0];
    for (const { labels, ...batch } of evalDataloader) {
      const { logits } = model.forward(batch);
      const predictions = this.gather((logits as Tensor).argmax(-1));
      const references = this.gather(labels);
      right += ops.eq(predictions, references).sum().item();
      all += references.numel;
    }
    return { accuracy: right / all, judged: all };
  }
}

const engine = new RapidformerEngine();
const trainer = new MyFinetuner(engine);
export default trainer.train();
