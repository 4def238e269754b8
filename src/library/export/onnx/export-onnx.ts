import type { Module } from "../../../compute/nn/index.ts";
import type { Task, TaskModel } from "../../models/index.ts";
import { exportError } from "../export-error.ts";
import { type ReadParameter, readFromMemory } from "../read-from-memory.ts";
import { type ForwardSpec, recordForward } from "../trace-forward.ts";
import { buildGraph } from "./build-graph.ts";
import { type FirstCall, partsOf } from "./parts.ts";
import { writeModel } from "./write-model.ts";

/** Types of weights in ONNX files, with the endings that transformers.js gives them. */
export const onnxTypes = { fp32: "", fp16: "_fp16", int8: "_quantized" } as const;

/** Options of ONNX files. */
export interface OnnxOptions {
  /** Version of ONNX's operators, from 17 to 21. Default: 17. */
  readonly opset?: number | undefined;
  /**
   * `fp32`; `fp16`, in which the model then computes; or `int8`: weights of products and embeddings in 8 bits, one scale for each
   * output, and inputs of products quantized when they come. Default: fp32.
   */
  readonly type?: keyof typeof onnxTypes | undefined;
  /** Weights above this size are in a file `….onnx_data` of their own. Default: 2 GiB, the limit of the format. */
  readonly maxFileBytes?: number | undefined;
}

/** Options of {@link writeOnnx}. */
export interface WriteOptions extends OnnxOptions {
  /**
   * Smallest value of a named size, such as the samples of the shortest audio: recorded sizes are about multiples of it. Default: 1.
   */
  readonly units?: Readonly<Record<string, number>>;
  /** Reads the model's parameters one by one. Default: from its memory. */
  readonly read?: ReadParameter;
  /** Makes some of the inputs at the first call. Default: all are given. */
  readonly firstCall?: FirstCall | undefined;
}

const [oldest, newest] = [17, 21];

/**
 * Writes a forward of a model, of any class, as an ONNX file. Nothing is computed: the operators that the forward calls are recorded
 * on tensors without memory, for several sizes, and translated one by one. What depends on a tensor's values, such as a loop until a
 * condition, cannot be recorded.
 * @param path - of the file; must not exist
 * @returns the files written
 * @throws {TroupeError} `EXPORT`, naming the module
 */
export async function writeOnnx(
  path: string,
  model: Module,
  spec: ForwardSpec,
  {
    opset = oldest,
    type = "fp32",
    maxFileBytes,
    units = {},
    read = readFromMemory(model),
    firstCall,
  }: WriteOptions = {},
): Promise<string[]> {
  if (!Number.isInteger(opset) || opset < oldest || opset > newest)
    throw exportError(`an opset from ${oldest} to ${newest}`, `${opset}`);
  const record = (each: ForwardSpec) => recordForward(model, each, { dtype: dtypeOf(type), units });
  const first = firstCall && { ...firstCall, forward: record(firstCall.spec) };
  const graph = buildGraph(record(spec), read, { opset, quantizes: type === "int8" }, first);
  return writeModel(path, graph, {
    opset,
    ...(maxFileBytes !== undefined && { maxMessageBytes: maxFileBytes }),
  });
}

/** Writes all graphs of a family's model into a folder. @returns the files written */
export async function writeOnnxParts(
  folder: string,
  model: TaskModel,
  task: Task,
  read: ReadParameter,
  options: OnnxOptions,
): Promise<string[]> {
  const files: string[] = [];
  const dtype = dtypeOf(options.type);
  for (const { file, spec, units = {}, firstCall } of partsOf(model, task, dtype)) {
    const path = `${folder}/${file}${onnxTypes[options.type ?? "fp32"]}.onnx`;
    files.push(...(await writeOnnx(path, model, spec, { ...options, units, read, firstCall })));
  }
  return files;
}

function dtypeOf(type: OnnxOptions["type"]): "float16" | "float32" {
  return type === "fp16" ? "float16" : "float32";
}
