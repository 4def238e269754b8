import { mkdir, writeFile } from "node:fs/promises";
import { basename, join, resolve } from "node:path";
import type { JsonObject } from "../checkpoint/index.ts";
import { writeBeside } from "../convert/index.ts";
import { exportError } from "./export-error.ts";
import { ggufFiles, ggufModelOf, writeGgufFile } from "./gguf/export-gguf.ts";
import { tokenizerFacts } from "./gguf/tokenizer.ts";
import { type OnnxOptions, onnxTypes, writeOnnxParts } from "./onnx/export-onnx.ts";
import { type OpenedModel, type OpenModelOptions, openModel } from "./open-model.ts";

/** Formats that a model can be exported to. */
export const exportKinds = ["onnx", "gguf"] as const;

/** Options of {@link exportModel}. */
export interface ExportOptions extends OpenModelOptions {
  readonly to: (typeof exportKinds)[number];
  /**
   * Types of weights, a file each: for ONNX any of `fp32`, `fp16` and `int8`, by default fp32; for GGUF any of `F32`, `F16`, `Q8_0`
   * and `Q4_K`, by default F16.
   */
  readonly types?: readonly string[] | undefined;
  /** For ONNX, see {@link OnnxOptions}. */
  readonly opset?: number | undefined;
  /** For ONNX, see {@link OnnxOptions}. */
  readonly maxFileBytes?: number | undefined;
}

/** Summary of an export. */
export interface Exported {
  readonly source: string;
  readonly target: string;
  readonly task: string;
  /** Paths in `target`. */
  readonly files: readonly string[];
}

/**
 * Exports a model for inference by other programs, with tokenizer and chat template: to ONNX, for onnxruntime and transformers.js, in
 * a folder that is laid out as on Hugging Face's hub; or to GGUF, for llama.cpp, one file for each type. Weights are read and
 * written one by one.
 * @param source - anything that `convert` reads, or an adapter with its base
 * @param target - must not exist
 * @throws {TroupeError} `EXPORT`, naming the module or the option; errors of reading and writing. Then nothing is left behind
 */
export async function exportModel(source: string, target: string, options: ExportOptions): Promise<Exported> {
  await using opened = await openModel(source, options);
  const write = options.to === "gguf" ? writeGgufFolder : writeOnnxFolder;
  const files = await writeBeside("export", target, (temporary) =>
    write(temporary, opened, options, basename(resolve(source))),
  );
  return { source, target, task: opened.task, files };
}

async function writeOnnxFolder(
  folder: string,
  opened: OpenedModel,
  { types = ["fp32"], opset, maxFileBytes }: ExportOptions,
): Promise<string[]> {
  const { model, task, config, generationConfig, companions } = opened;
  const place = join(folder, "onnx");
  const known = types.map((type) => typeOf(type, onnxTypes));
  await mkdir(place, { recursive: true });
  const written: string[] = [];
  for (const type of known)
    written.push(...(await writeOnnxParts(place, model, task, opened.read, { type, opset, maxFileBytes })));
  const hasApart = written.some((path) => path.endsWith("_data"));
  const texts: Record<string, JsonObject> = {
    "config.json": hasApart
      ? { ...config, "transformers.js_config": { use_external_data_format: true } }
      : config,
    ...(generationConfig && { "generation_config.json": generationConfig }),
  };
  for (const [name, text] of Object.entries(texts))
    await writeFile(join(folder, name), `${JSON.stringify(text, null, 2)}\n`);
  for (const [name, bytes] of Object.entries(companions)) await writeFile(join(folder, name), bytes);
  return [
    ...Object.keys(texts),
    ...Object.keys(companions),
    ...written.map((path) => `onnx/${basename(path)}`),
  ];
}

async function writeGgufFolder(
  folder: string,
  opened: OpenedModel,
  { types = ["F16"], opset, maxFileBytes }: ExportOptions,
  name: string,
): Promise<string[]> {
  for (const [option, value] of Object.entries({ opset, maxFileBytes }))
    if (value !== undefined) throw exportError("options of GGUF files", option, { hint: "it is ONNX's" });
  const known = types.map((type) => typeOf(type, ggufFiles));
  const form = await ggufModelOf(opened);
  await mkdir(folder, { recursive: true });
  const tokenizer = await tokenizerFacts(opened, form.numWords);
  const files: string[] = [];
  for (const type of known) {
    const file = `${name}-${type}.gguf`;
    await writeGgufFile(join(folder, file), opened, form, { type, name, tokenizer });
    files.push(file);
  }
  return files;
}

function typeOf<Types extends object>(type: string, types: Types): keyof Types {
  if (Object.hasOwn(types, type)) return type as keyof Types;
  throw exportError(`a type of ${Object.keys(types).join(", ")}`, type);
}
