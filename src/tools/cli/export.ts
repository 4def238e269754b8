import type { Command } from "commander";
import { exportKinds, exportModel } from "../../library/export/index.ts";
import { baseOf } from "./adapter-base.ts";
import { bytes, number, print, usage } from "./flags.ts";

interface ExportFlags {
  readonly to: string;
  readonly type?: readonly string[];
  readonly opset?: number;
  readonly base?: string;
  readonly task?: string;
  readonly maxFileSize?: number;
  readonly json: boolean;
}

/** Adds `troupe export FOLDER [TARGET] --to FORM`. */
export function addExportCommand(program: Command): void {
  program
    .command("export")
    .description("export a model for inference by onnxruntime and transformers.js, or by llama.cpp")
    .argument("<folder>", "a checkpoint, a Hugging Face folder, or an adapter")
    .argument("[target]", "what to write; must not exist (default: FOLDER-FORM)")
    .requiredOption("--to <form>", exportKinds.join(" or "))
    .option(
      "--type <types...>",
      "types of weights, each in a file of its own: of ONNX fp32, fp16, int8 (default: fp32); of GGUF F32, F16, Q8_0, Q4_K (default: F16)",
    )
    .option("--opset <n>", "version of ONNX's operators, 17 to 21 (default: 17)", number)
    .option(
      "--base <folder>",
      "base model of an adapter, instead of the one that its adapter_config.json names",
    )
    .option("--task <task>", "task of the model, if its config.json names no architecture")
    .option(
      "--max-file-size <size>",
      "weights above this size get a file of their own (default: 2GiB)",
      bytes,
    )
    .option("--json", "print one JSON object", false)
    .action(run);
}

async function run(folder: string, given: string | undefined, flags: ExportFlags): Promise<void> {
  const to = exportKinds.find((kind) => kind === flags.to);
  if (to === undefined)
    throw usage(`--to ${exportKinds.join(", ")}`, JSON.stringify(flags.to), "choose one of them");
  const { type: types, opset, task, maxFileSize: maxFileBytes } = flags;
  const base = baseOf(folder, flags.base);
  const target = given ?? `${folder.replace(/\/+$/, "")}-${to}`;
  const exported = await exportModel(folder, target, { to, types, opset, task, base, maxFileBytes });
  if (flags.json) print(JSON.stringify(exported));
  else print(`${exported.task} of ${exported.source} is in ${exported.target}: ${exported.files.join(", ")}`);
}
