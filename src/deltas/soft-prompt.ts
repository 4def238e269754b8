import { Embedding, IGNORE_INDEX, Module, normal, Parameter, wrapForward } from "../nn/index.ts";
import { ops, Tensor } from "../tensor/index.ts";
import { type Delta, deltaOption, deltaTarget } from "./delta.ts";
import { headsOf, peftTask } from "./family.ts";
import { liesIn } from "./target.ts";

/** What a soft prompt may be told. */
export interface SoftPromptOptions {
  /** Virtual tokens in front of every row; 8 unless told otherwise. */
  readonly numTokens?: number;
  /** The embedding that looks up tokens, by name; the model's only one over its whole vocabulary unless told otherwise. */
  readonly embedding?: string;
  /** Modules of the model's own that are trained and saved whole; the new head of the model's task unless told otherwise. */
  readonly modulesToSave?: readonly string[] | undefined;
  /** A folder as peft writes it whose values it begins with. */
  readonly folder?: string | undefined;
}

/** The vectors of the virtual tokens, which take the place of what was looked up for the first positions. */
class Prompt extends Module {
  readonly prompt_embeddings: Parameter;

  constructor(numTokens: number, width: number) {
    super();
    this.prompt_embeddings = new Parameter([numTokens, width], normal(0, 1));
  }

  /** @param rows - [B, n + T, D], of which the first n are in place of the prompt */
  override forward(rows: Tensor): Tensor {
    const [numRows = 0, length = 0, width = 0] = rows.shape;
    const { tensor, shape } = this.prompt_embeddings;
    const [numTokens = 0] = shape;
    const prompt = tensor.to(rows.dtype).unsqueeze(0).expand([numRows, numTokens, width]);
    return ops.cat([prompt, rows.narrow(1, numTokens, length - numTokens)], 1);
  }
}

/**
 * Vectors in front of every row, trained in place of the model: prompt tuning. The model answers n positions more, which have no
 * labels.
 * @throws {TroupeError} `DELTA_OPTION`
 * @see Lester et al. 2021, https://arxiv.org/abs/2104.08691
 */
export function softPrompt(options: SoftPromptOptions = {}): Delta {
  const { numTokens = 8, folder } = options;
  if (!Number.isSafeInteger(numTokens) || numTokens < 1)
    throw deltaOption("numTokens", "a whole number ≥ 1", numTokens);
  const savedOf = (model: Module) => options.modulesToSave ?? headsOf(model);
  return {
    peftType: "PROMPT_TUNING",
    folder,
    attach: (model) => {
      checkModel(model);
      const embedding = tokenEmbedding(model, options.embedding);
      const prompt = new Prompt(numTokens, embedding.weight.shape[1] ?? 0);
      Object.assign(embedding, { prompt }); // a module's name is its property's
      embedding.behind = prompt;
      wrapForward(
        model,
        (forward, inputs) => (forward as Forward)(...lengthened(inputs, numTokens)) as never,
      );
    },
    trains: (name, model) => liesIn(name, savedOf(model)),
    // Of peft's models only those with low-rank maps stand one deeper.
    entryOf: (name) => (name.endsWith(".prompt_embeddings") ? "prompt_embeddings" : `base_model.${name}`),
    configJson: (model) => ({
      peft_type: "PROMPT_TUNING",
      task_type: peftTask(model),
      num_virtual_tokens: numTokens,
      token_dim: tokenEmbedding(model, options.embedding).weight.shape[1] ?? 0,
      num_transformer_submodules: 1,
      prompt_tuning_init: "RANDOM",
      modules_to_save: savedOf(model).length === 0 ? null : savedOf(model),
    }),
  };
}

type Forward = (...inputs: readonly unknown[]) => unknown;

/** What is asked of a text, by name, and what stands for the virtual tokens in it. */
const prefixes: Readonly<Record<string, number>> = {
  inputIds: 0,
  attentionMask: 1,
  tokenTypeIds: 0,
  labels: IGNORE_INDEX,
  targets: IGNORE_INDEX,
};

/** A batch, or token ids and a request, with n positions more in front of whatever has a value for each position. */
function lengthened(inputs: readonly unknown[], numTokens: number): readonly unknown[] {
  const [first, request] = inputs;
  if (!(first instanceof Tensor)) return [longer(first as Named, numTokens), ...inputs.slice(1)];
  return [
    inFront(first, 0, numTokens),
    ...(request === undefined ? [] : [longer(request as Named, numTokens)]),
  ];
}

type Named = Readonly<Record<string, unknown>>;

function longer(named: Named, numTokens: number): Named {
  return Object.fromEntries(
    Object.entries(named).map(([name, value]) => {
      const prefix = prefixes[name];
      const isText = prefix !== undefined && value instanceof Tensor && value.ndim === 2;
      return [name, isText ? inFront(value, prefix, numTokens) : value];
    }),
  );
}

function inFront(ids: Tensor, value: number, numTokens: number): Tensor {
  const prefix = ops
    .zeros([ids.shape[0] ?? 0, numTokens], ids.dtype)
    .add(value)
    .to(ids.dtype);
  return ops.cat([prefix, ids], 1);
}

function checkModel(model: Module): void {
  const { is_encoder_decoder: isTwo } =
    (model as { readonly configJson?: { is_encoder_decoder?: unknown } }).configJson ?? {};
  if (isTwo === true || peftTask(model) === "SEQ_2_SEQ_LM" || peftTask(model) === "QUESTION_ANS")
    throw deltaTarget(
      "a model of one stack whose positions nobody counts",
      model.constructor.name,
      "use lora",
    );
}

function tokenEmbedding(model: Module, name: string | undefined): Embedding {
  const { vocab_size: numTokens } =
    (model as { readonly configJson?: { vocab_size?: unknown } }).configJson ?? {};
  const found = [...model.namedModules()].filter(
    ([each, module]) =>
      module instanceof Embedding &&
      (name === undefined
        ? (module.weight.split?.logicalShape ?? module.weight.shape)[0] === numTokens
        : each === name),
  );
  if (found.length === 1) return found[0]?.[1] as Embedding;
  throw deltaTarget("the embedding of tokens", `${found.length} of them`, "name it: embedding");
}
