import { createHash } from "node:crypto";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { dematerialize, evaluating, materialize } from "../../src/compute/nn/index.ts";
import { liveTensors, noGrad, scope, type Tensor, tensor } from "../../src/compute/tensor/index.ts";
import {
  type GenerateOptions,
  type GenerativeModel,
  generate,
  type Task,
  type TaskModel,
} from "../../src/library/models/index.ts";
import { declareGolden, type GoldenFolder, goldenFolders, loadGolden } from "./golden.ts";

/** The output of make-generated.py for a reference state. */
interface Generated {
  /** Digest of its config.json and weights: another state may lie there under the same name. */
  readonly sha256: string;
  readonly prompts: readonly (readonly number[])[];
  readonly pad: number;
  readonly stop: number;
  readonly new_tokens: number;
  readonly results: Readonly<Record<string, readonly (readonly number[])[]>>;
}

interface Settings {
  readonly repetition_penalty?: number;
  readonly num_beams?: number;
  readonly length_penalty?: number;
  readonly early_stopping?: boolean | "never";
}

// Written where Python's transformers is: `python test/golden/make-generated.py GOLDEN... test/golden/generated.json`, or the file
// that TROUPE_GENERATED names, for other reference states.
const file = process.env.TROUPE_GENERATED ?? new URL("generated.json", import.meta.url);
const { transformers, settings, folders } = JSON.parse(readFileSync(file, "utf8")) as {
  readonly transformers: string;
  readonly settings: Readonly<Record<string, Settings>>;
  readonly folders: Readonly<Record<string, Generated>>;
};

const writing: readonly (string | undefined)[] = ["causal_lm", "seq2seq_lm"] satisfies Task[];
const states = goldenFolders().filter(({ task, lacks }) => lacks === undefined && writing.includes(task));
const known = states.filter((state) => {
  const made = folders[state.name];
  return made !== undefined && made.sha256 === digestOf(state);
});
const others = states.filter((state) => !known.includes(state));

function digestOf({ path }: GoldenFolder): string | undefined {
  const files = ["config.json", "model.safetensors"].map((name) => join(path, name));
  if (!files.every((each) => existsSync(each))) return undefined;
  return files.reduce((hash, each) => hash.update(readFileSync(each)), createHash("sha256")).digest("hex");
}

describe.skipIf(known.length === 0)(`text is that of transformers ${transformers}, token by token`, () => {
  test.each(known.map((each) => [each.name, each] as const))("golden/%s", async (name, state) => {
    const { task } = state;
    const { prompts, pad, stop, new_tokens: maxNewTokens, results } = folders[name] as Generated;
    const model = declareGolden(state);
    materialize(model, { seed: 0 });
    await loadGolden(model, state);
    const before = liveTensors();
    const isReply = task === "seq2seq_lm";
    for (const [result, expected] of Object.entries(results)) {
      const setting = settings[result.replace(/, stopped$/, "")] ?? {};
      const options: GenerateOptions = {
        maxNewTokens,
        temperature: setting.num_beams === undefined ? 0 : 1,
        padToken: pad,
        stopTokens: result.endsWith(", stopped") ? [stop] : [],
        ...(setting.repetition_penalty !== undefined && { repetitionPenalty: setting.repetition_penalty }),
        ...(setting.num_beams !== undefined && { numBeams: setting.num_beams }),
        ...(setting.length_penalty !== undefined && { lengthPenalty: setting.length_penalty }),
        ...(setting.early_stopping !== undefined && { earlyStopping: setting.early_stopping }),
      };
      const written = generate(model as unknown as GenerativeModel, prompts, options).map((text, row) =>
        text.slice(isReply ? 1 : (prompts[row]?.length ?? 0)),
      );
      expect({ result, written }).toEqual({ result, written: expected });
      if (isReply) continue;
      const alone = prompts.map((prompt) =>
        generate(model as unknown as GenerativeModel, prompt, options).slice(prompt.length),
      );
      expect({ result, alone }).toEqual({ result, alone: expected });
    }
    expect(liveTensors()).toBe(before);
    dematerialize(model);
  });
});

// States without results of transformers: they replace the golden folders.
describe.skipIf(others.length === 0)("text is that of a pass over all of it for each token", () => {
  test.each(others.map((each) => [each.name, each] as const))("golden/%s", async (_, state) => {
    const { config, task } = state;
    const model = declareGolden(state);
    materialize(model, { seed: 0 });
    await loadGolden(model, state);
    const vocabSize = Number(config.vocab_size);
    const prompts = [7, 4, 9].map((length, row) =>
      Array.from({ length }, (_, place) => 4 + ((31 * place + 17 * row) % (vocabSize - 4))),
    );
    const most = Number(config.n_positions ?? config.max_position_embeddings ?? Number.POSITIVE_INFINITY);
    const numTokens = Math.min(12, most - 9);
    const isReply = task === "seq2seq_lm";
    for (const penalty of [1, 1.7]) {
      const options = { maxNewTokens: numTokens, temperature: 0, stopTokens: [], repetitionPenalty: penalty };
      const written = prompts.map((prompt) => generate(model as unknown as GenerativeModel, prompt, options));
      const begun = Number(config.decoder_start_token_id);
      const expected = prompts.map((prompt) => {
        const text = isReply ? [begun] : [...prompt];
        for (let count = 0; count < numTokens; count++)
          text.push(likeliest(lastLogits(model, isReply ? { prompt, text } : { text }), text, penalty));
        return text;
      });
      expect({ penalty, written }).toEqual({ penalty, written: expected });
    }
    dematerialize(model);
  });
});

/** The scores of what follows a text, by a pass over all of it. */
function lastLogits(
  model: TaskModel,
  { prompt, text }: { readonly prompt?: readonly number[]; readonly text: readonly number[] },
): number[] {
  const row = (ids: readonly number[]) => tensor(BigInt64Array.from(ids, BigInt), { shape: [1, ids.length] });
  return noGrad(() =>
    scope(() => {
      const batch =
        prompt === undefined
          ? { inputIds: row(text) }
          : { inputIds: row(prompt), decoderInputIds: row(text) };
      const { logits } = evaluating(model, () => model.forward(batch));
      return [
        ...((logits as Tensor)
          .narrow(1, text.length - 1, 1)
          .contiguous()
          .toTypedArray() as Float32Array),
      ];
    }),
  );
}

/** As transformers counts repetitions: scores of tokens that are there are divided, those below 0 multiplied. */
function likeliest(logits: readonly number[], text: readonly number[], penalty: number): number {
  const scores = logits.map((score, id) =>
    text.includes(id) ? (score < 0 ? score * penalty : score / penalty) : score,
  );
  return scores.indexOf(Math.max(...scores));
}
