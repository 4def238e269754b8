import type { Module } from "../../compute/nn/index.ts";

/** What peft calls the tasks of architectures. */
const tasks: Readonly<Record<string, string>> = {
  ForSequenceClassification: "SEQ_CLS",
  ForTokenClassification: "TOKEN_CLS",
  ForQuestionAnswering: "QUESTION_ANS",
  ForConditionalGeneration: "SEQ_2_SEQ_LM",
  ForCausalLM: "CAUSAL_LM",
  LMHeadModel: "CAUSAL_LM",
};

/** Heads that peft trains and saves beside, where a task begins with a new one. */
const heads: Readonly<Record<string, readonly string[]>> = {
  SEQ_CLS: ["classifier", "score"],
  TOKEN_CLS: ["classifier", "score"],
  QUESTION_ANS: ["qa_outputs"],
};

/** Which maps are tuned where nobody says, as peft has it. */
const targets: Readonly<Record<string, readonly string[]>> = {
  bert: ["query", "value"],
  roberta: ["query", "value"],
  "data2vec-text": ["query", "value"],
  albert: ["query", "value"],
  t5: ["q", "v"],
  bart: ["q_proj", "v_proj"],
  blenderbot: ["q_proj", "v_proj"],
  gpt2: ["c_attn"],
  gptj: ["q_proj", "v_proj"],
  gpt_neox: ["query_key_value"],
  opt: ["q_proj", "v_proj"],
  llama: ["q_proj", "v_proj"],
  mistral: ["q_proj", "v_proj"],
  qwen2: ["q_proj", "v_proj"],
};

/** Which maps (IA)³ rescales where nobody says, and which of them before the product, as peft has it. */
const rescaled: Readonly<
  Record<string, { readonly target: readonly string[]; readonly feedForward: string }>
> = {
  bert: { target: ["key", "value", "output.dense"], feedForward: "output.dense" },
  roberta: { target: ["key", "value", "output.dense"], feedForward: "output.dense" },
  t5: { target: ["k", "v", "wo"], feedForward: "wo" },
  bart: { target: ["q_proj", "v_proj", "fc2"], feedForward: "fc2" },
  gpt2: { target: ["c_attn", "mlp.c_proj"], feedForward: "mlp.c_proj" },
  gptj: { target: ["q_proj", "v_proj", "fc_out"], feedForward: "fc_out" },
  gpt_neox: { target: ["query_key_value", "dense_4h_to_h"], feedForward: "dense_4h_to_h" },
  opt: { target: ["q_proj", "k_proj", "fc2"], feedForward: "fc2" },
  llama: { target: ["k_proj", "v_proj", "down_proj"], feedForward: "down_proj" },
  mistral: { target: ["k_proj", "v_proj", "down_proj"], feedForward: "down_proj" },
  qwen2: { target: ["q_proj", "v_proj", "down_proj"], feedForward: "down_proj" },
};

interface Described {
  readonly configJson?: { readonly model_type?: unknown; readonly architectures?: unknown };
}

/** What peft calls a model's task; null where its config.json does not tell. */
export function peftTask(model: Module): string | null {
  const { architectures } = (model as Described).configJson ?? {};
  const [architecture] = Array.isArray(architectures) ? (architectures as string[]) : [];
  const suffix = Object.keys(tasks).find(
    (ending) => typeof architecture === "string" && architecture.endsWith(ending),
  );
  return suffix === undefined ? null : (tasks[suffix] ?? null);
}

/** Names of the modules that a model's task begins with anew. */
export function headsOf(model: Module): readonly string[] {
  return heads[peftTask(model) ?? ""] ?? [];
}

/** Names of the maps that are tuned where nobody says; none for a family that is not known. */
export function defaultTargets(model: Module): readonly string[] | undefined {
  return targets[String((model as Described).configJson?.model_type)];
}

/** The same of (IA)³, and which of them are rescaled before the product. */
export function defaultRescaled(
  model: Module,
): { readonly target: readonly string[]; readonly feedForward: readonly string[] } | undefined {
  const found = rescaled[String((model as Described).configJson?.model_type)];
  return found && { target: found.target, feedForward: [found.feedForward] };
}
