import { mkdir, writeFile } from "node:fs/promises";
import { basename, join } from "node:path";
import type { JsonObject } from "../checkpoint/index.ts";
import { writeBeside } from "../convert/index.ts";
import { exportError } from "./export-error.ts";
import { type OnnxOptions, onnxTypes, writeOnnxParts } from "./onnx/export-onnx.ts";
import { type OpenedModel, type OpenModelOptions, openModel } from "./open-model.ts";

/** Formats that a model can be exported to. */
export const exportKinds = ["onnx"] as const;

/** Options of {@link exportModel}. */
export interface ExportOptions extends OpenModelOptions {
  readonly to: (typeof exportKinds)[number];
  /** Types of weights: for ONNX any of `fp32`, `fp16` and `int8`, a file each. Default: fp32. */
  readonly types?: readonly string[] | undefined;
  /** See {@link OnnxOptions}. */
  readonly opset?: number | undefined;
  /** See {@link OnnxOptions}. */
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
 * Exports a model for inference by other programs: to ONNX, for onnxruntime and transformers.js, in a folder with configs, tokenizer
 * and chat template, as those are laid out on Hugging Face's hub. Weights are read and written one by one.
 * @param source - anything that `convert` reads, or an adapter with its base
 * @param target - must not exist
 * @throws {TroupeError} `EXPORT`, naming the module or the option; errors of reading and writing. Then nothing is left behind
 */
export async function exportModel(source: string, target: string, options: ExportOptions): Promise<Exported> {
  await using opened = await openModel(source, options);
  const files = await writeBeside("export", target, (temporary) =>
    writeOnnxFolder(temporary, opened, options),
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
  await mkdir(place, { recursive: true });
  const written: string[] = [];
  for (const type of types.map(onnxTypeOf))
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

function onnxTypeOf(type: string): NonNullable<OnnxOptions["type"]> {
  if (Object.hasOwn(onnxTypes, type)) return type as NonNullable<OnnxOptions["type"]>;
  throw exportError(`a type of ${Object.keys(onnxTypes).join(", ")}`, type);
}
