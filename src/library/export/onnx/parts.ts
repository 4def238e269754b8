import { GivenPast, type Module } from "../../../compute/nn/index.ts";
import { type DType, ops, type Tensor } from "../../../compute/tensor/index.ts";
import type { ModelBatch, Task, TaskModel } from "../../models/index.ts";
import { exportError } from "../export-error.ts";
import { type ExportInput, type ForwardSpec, recordForward } from "../trace-forward.ts";

/** One graph of a model, with the file's name and the names of inputs and outputs that transformers.js and optimum use. */
export interface Part {
  readonly file: "model" | "encoder_model" | "decoder_model_merged";
  readonly spec: ForwardSpec;
  readonly firstCall?: FirstCall;
  /** See {@link recordForward}. */
  readonly units?: Readonly<Record<string, number>>;
}

/** Inputs of a part that its first call makes itself: those of that name are not read then. */
export interface FirstCall {
  /** Name of an input, bool [1]: whether there was a call before. */
  readonly unless: string;
  /** Makes the inputs, by their names. */
  readonly spec: ForwardSpec;
  /** The size of the inputs that is 0 at the first call, by its name in `spec` and its name in the file. */
  readonly size: readonly [made: string, given: string];
}

type Inputs = Readonly<Record<string, Tensor>>;

const ids = (...shape: string[]): ExportInput => ({ shape, dtype: "int64" });

/** Samples of the shortest recordings in traces: several frames of every family. */
const SAMPLES = 2000;

/**
 * The graphs of a model of a family.
 * @param dtype - in which it computes; keys, values and states pass between calls in it, other inputs and outputs are float32
 * @throws {TroupeError} `EXPORT` for a task without use outside of training
 */
export function partsOf(model: TaskModel, task: Task, dtype: "float32" | "float16"): Part[] {
  switch (task) {
    case "pretraining":
    case "masked_lm":
    case "sequence_classification":
    case "token_classification":
    case "question_answering":
      return [textPart(model)];
    case "causal_lm":
      return [causalPart(model, dtype)];
    case "seq2seq_lm":
      return seq2seqParts(model, dtype);
    case "image_classification":
      return [imagePart(model)];
    case "image_text":
      return [imageTextPart(model)];
    case "speech_recognition":
    case "audio_classification":
      return [audioPart(model)];
    case "speech_pretraining":
      throw exportError("a task with outputs that programs use", task, {
        hint: "tune the model for another one first",
      });
  }
}

function textPart(model: TaskModel): Part {
  const { type_vocab_size: numTypes } = model.configJson;
  const text = ids("batch_size", "sequence_length");
  const inputs = {
    input_ids: text,
    attention_mask: text,
    ...(Number(numTypes ?? 0) > 1 && { token_type_ids: text }),
  };
  const run = (given: Inputs) =>
    outputsOf(
      model.forward({
        inputIds: given.input_ids,
        attentionMask: given.attention_mask,
        ...(given.token_type_ids && { tokenTypeIds: given.token_type_ids }),
      }),
    );
  return { file: "model", spec: { inputs, run } };
}

/** Names in the style of Python; the loss has no use. */
function outputsOf({ loss: _, ...outputs }: Readonly<Record<string, Tensor>>): Record<string, Tensor> {
  return Object.fromEntries(
    Object.entries(outputs).map(([name, tensor]) => [
      name.replaceAll(/[A-Z]/g, (c) => `_${c.toLowerCase()}`),
      tensor.to("float32"),
    ]),
  );
}

type Past = readonly (readonly [keys: Tensor, values: Tensor])[];

/** Heads and width of the keys that a decoder keeps, of each layer. */
function keptBy(model: Module, spec: ForwardSpec): { readonly heads: number; readonly width: number }[] {
  return recordForward(model, spec).outputs.map(({ tensor }) => {
    const [, heads, , width] = tensor.shape;
    return { heads: Number(heads), width: Number(width) };
  });
}

function pastInputs(
  kept: readonly { readonly heads: number; readonly width: number }[],
  infix: string,
  length: string,
  dtype: DType,
): Record<string, ExportInput> {
  const entries = kept.flatMap(({ heads, width }, layer) =>
    ["key", "value"].map((half): [string, ExportInput] => [
      `past_key_values.${layer}.${infix}${half}`,
      { shape: ["batch_size", heads, length, width], dtype },
    ]),
  );
  return Object.fromEntries(entries);
}

function pastOf(given: Inputs, numLayers: number, infix: string): Past {
  const half = (layer: number, name: string) => given[`past_key_values.${layer}.${infix}${name}`] as Tensor;
  return Array.from({ length: numLayers }, (_, layer) => [half(layer, "key"), half(layer, "value")]);
}

/** Keys and values by layer. @param prefix - `present` for outputs, `past_key_values` for inputs */
function namedPast(past: Past, prefix: string, infix: string): Record<string, Tensor> {
  const entries = past.flatMap(([keys, values], layer) => [
    [`${prefix}.${layer}.${infix}key`, keys],
    [`${prefix}.${layer}.${infix}value`, values],
  ]);
  return Object.fromEntries(entries);
}

/** The keys of each layer alone. */
function keysOf(past: Past): Record<string, Tensor> {
  return Object.fromEntries(past.map(([keys], layer) => [`${layer}`, keys]));
}

function causalPart(model: TaskModel, dtype: DType): Part {
  const forward = (given: Inputs, past: GivenPast) => {
    const { input_ids: inputIds, attention_mask: attentionMask } = given as {
      input_ids: Tensor;
      attention_mask: Tensor;
    };
    return past.pass(inputIds.shape[1] ?? 0, () => model.forward({ inputIds, attentionMask }));
  };
  const given = (past: Past, inputs: Inputs) => new GivenPast(past, (inputs.attention_mask as Tensor).ne(0));
  const text = ids("batch_size", "sequence_length");
  const kept = keptBy(model, {
    inputs: { input_ids: text, attention_mask: text },
    run: (inputs) => {
      const past = given([], inputs);
      forward(inputs, past);
      return keysOf(past.made);
    },
  });
  return {
    file: "model",
    spec: {
      inputs: {
        input_ids: text,
        attention_mask: ids("batch_size", "total_sequence_length"),
        ...pastInputs(kept, "", "past_sequence_length", dtype),
      },
      sums: { total_sequence_length: ["past_sequence_length", "sequence_length"] },
      run: (inputs) => {
        const past = given(pastOf(inputs, kept.length, ""), inputs);
        const { logits } = forward(inputs, past) as { logits: Tensor };
        return { ...outputsOf({ logits }), ...namedPast(past.made, "present", "") };
      },
    },
  };
}

function seq2seqParts(model: TaskModel, dtype: DType): Part[] {
  const source = ids("batch_size", "encoder_sequence_length");
  const encode = (given: Inputs) => {
    const inputIds = given.input_ids as Tensor;
    const past = new GivenPast([]);
    // The decoder's part of the forward is left out of the graph: no output depends on it.
    const decoderInputIds = ops.zeros([inputIds.shape[0] ?? 0, 1], "int64");
    past.pass(1, () => model.forward({ inputIds, attentionMask: given.attention_mask, decoderInputIds }));
    return past;
  };
  const inputs = { input_ids: source, attention_mask: source };
  const [width = 0] = recordForward(model, {
    inputs,
    run: (given) => ({ states: encode(given).encoded?.[0] as Tensor }),
  }).outputs.map(({ tensor }) => Number(tensor.shape[2]));
  const kept = keptBy(model, { inputs, run: (given) => keysOf(encode(given).made) });
  const crossed = keptBy(model, { inputs, run: (given) => keysOf(encode(given).crossed) });
  const written = ids("batch_size", "decoder_sequence_length");
  const states: ExportInput = { shape: ["batch_size", "encoder_sequence_length", width], dtype };
  const decode = (given: Inputs, past: GivenPast) => {
    const mask = given.encoder_attention_mask as Tensor;
    // The encoder is not computed: only the shape of its ids is read.
    const batch: ModelBatch = { inputIds: mask, attentionMask: mask, decoderInputIds: given.input_ids };
    return past.pass(1, () => model.forward(batch)) as { logits: Tensor };
  };
  return [
    {
      file: "encoder_model",
      spec: { inputs, run: (given) => ({ last_hidden_state: encode(given).encoded?.[0] as Tensor }) },
    },
    {
      file: "decoder_model_merged",
      spec: {
        inputs: {
          encoder_attention_mask: source,
          input_ids: written,
          ...pastInputs(kept, "decoder.", "past_decoder_sequence_length", dtype),
          ...pastInputs(crossed, "encoder.", "encoder_sequence_length", dtype),
        },
        run: (given) => {
          // Where the keys of the states are given, the states are not read.
          const unread = ops.zeros([...(given.encoder_attention_mask as Tensor).shape, width], dtype);
          const before = pastOf(given, kept.length, "decoder.");
          const past = new GivenPast(before, undefined, [unread], pastOf(given, crossed.length, "encoder."));
          const { logits } = decode(given, past);
          return {
            ...outputsOf({ logits }),
            ...namedPast(past.made, "present", "decoder."),
            ...namedPast(past.crossed, "present", "encoder."),
          };
        },
      },
      firstCall: {
        unless: "use_cache_branch",
        size: ["encoder_sequence_length", "encoder_sequence_length_out"],
        spec: {
          inputs: { encoder_hidden_states: states },
          run: (given) => {
            const hidden = given.encoder_hidden_states as Tensor;
            const past = new GivenPast([], undefined, [hidden]);
            const [batch = 0, length = 0] = hidden.shape;
            const zeros = (size: number) => ops.zeros([batch, size], "int64");
            decode({ encoder_attention_mask: zeros(length), input_ids: zeros(1) }, past);
            return namedPast(past.crossed, "past_key_values", "encoder.");
          },
        },
      },
    },
  ];
}

/** [channels, height, width] by the fields of a vision config. */
function picture(config: Readonly<Record<string, unknown>>): number[] {
  const { num_channels: channels, image_size: size } = config;
  const both = Array.isArray(size) ? size.map(Number) : [Number(size), Number(size)];
  return [Number(channels ?? 3), ...both];
}

function imagePart(model: TaskModel): Part {
  const inputs = { pixel_values: { shape: ["batch_size", ...picture(model.configJson)] } };
  return {
    file: "model",
    spec: { inputs, run: ({ pixel_values: pixelValues }) => outputsOf(model.forward({ pixelValues })) },
  };
}

function imageTextPart(model: TaskModel): Part {
  const vision = model.configJson.vision_config as Readonly<Record<string, unknown>>;
  const text = ids("text_batch_size", "sequence_length");
  return {
    file: "model",
    spec: {
      inputs: {
        input_ids: text,
        pixel_values: { shape: ["image_batch_size", ...picture(vision)] },
        attention_mask: text,
      },
      run: ({ input_ids: inputIds, pixel_values: pixelValues, attention_mask: attentionMask }) =>
        outputsOf(model.forward({ inputIds, pixelValues, attentionMask })),
    },
  };
}

function audioPart(model: TaskModel): Part {
  return {
    file: "model",
    spec: {
      inputs: { input_values: { shape: ["batch_size", "num_samples"] } },
      run: ({ input_values: inputValues }) => outputsOf(model.forward({ inputValues })),
    },
    units: { num_samples: SAMPLES },
  };
}
