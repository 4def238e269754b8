import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { type GenerateOptions, type GenerativeModel, generate, type Task } from "../../src/models/index.ts";
import { dematerialize, materialize } from "../../src/nn/index.ts";
import { liveTensors } from "../../src/tensor/index.ts";
import { declareGolden, goldenFolders, loadGolden } from "./golden.ts";

/** What make-generated.py writes of a reference state. */
interface Generated {
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
const known = states.filter(({ name }) => name in folders);

describe.skipIf(known.length === 0)(`text is that of transformers ${transformers}, token by token`, () => {
  for (const { name } of states.filter((each) => !known.includes(each)))
    test.skip(`golden/${name}: nothing was generated of it (make-generated.py)`);

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
