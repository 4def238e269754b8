import { whichPathWasMeant } from "../../../errors/index.ts";
import { maxFileBytes, readBoundedText } from "../../../errors/untrusted/index.ts";
import { type JsonObject, parseJsonObject } from "../../../library/checkpoint/index.ts";
import { type ConvertOptions, convert, convertKinds } from "../../../library/convert/index.ts";
import { print, usage } from "../flags.ts";

interface ConvertFlags {
  readonly to: string;
  readonly config?: string;
  readonly maxFileSize?: number;
  readonly withOptimizer: boolean;
  readonly tp?: number;
  readonly pp?: number;
  readonly megatronVersion?: number;
  readonly json: boolean;
}

/** `troupe checkpoint convert SOURCE TARGET --to FORM` */
export async function convertCheckpoint(source: string, target: string, flags: ConvertFlags): Promise<void> {
  const { tp, pp, megatronVersion: version, maxFileSize, withOptimizer } = flags;
  const to = convertKinds.find((kind) => kind === flags.to);
  if (to === undefined)
    throw usage(`--to ${convertKinds.join(", ")}`, JSON.stringify(flags.to), "choose one of them");
  if ((tp ?? pp) !== undefined && to !== "megatron")
    throw usage("--tp and --pp with --to megatron", `--to ${to}`, "leave them out");
  if (maxFileSize !== undefined && to !== "hf" && to !== "troupe")
    throw usage("--max-file-size with --to hf or troupe", `--to ${to}`, "leave it out");
  if (withOptimizer && to !== "safetensors")
    throw usage("--with-optimizer with --to safetensors", `--to ${to}`, "leave it out");
  if (version !== undefined && ![0, 1, 2, 3].includes(version))
    throw usage("--megatron-version 0, 1, 2 or 3", String(version), "as checkpoint_version in the original");
  const megatron = {
    ...(tp !== undefined && { tp }),
    ...(pp !== undefined && { pp }),
    ...(version !== undefined && { version }),
  };
  const options: ConvertOptions = {
    to,
    megatron,
    version,
    maxFileBytes: maxFileSize,
    optimizer: withOptimizer,
  };
  const converted = await convert(source, target, { ...options, config: await readConfig(flags.config) });
  if (flags.json) print(JSON.stringify(converted));
  else
    print(
      `${converted.numTensors} tensors of ${converted.source} (${converted.from}) are in ${converted.target} (${to})`,
    );
}

async function readConfig(path: string | undefined): Promise<JsonObject | undefined> {
  if (path === undefined) return undefined;
  const text = await readBoundedText(path, maxFileBytes.config).catch((cause: Error) => {
    throw usage(
      "--config FILE",
      `${path}: ${cause.message}`,
      whichPathWasMeant(path) ?? "give the model's config.json",
    );
  });
  return parseJsonObject(text, path);
}
