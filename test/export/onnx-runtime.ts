import { execFileSync } from "node:child_process";
import { cpSync, existsSync, mkdirSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

/** The parts of onnxruntime-node that tests use. */
interface OnnxRuntime {
  readonly InferenceSession: {
    create(path: string, options: { readonly logSeverityLevel: number }): Promise<Session>;
  };
  readonly Tensor: new (type: string, data: ArrayLike<number | bigint>, shape: readonly number[]) => object;
}

/** An open model. */
export interface Session {
  readonly inputMetadata: readonly {
    readonly name: string;
    readonly isTensor: boolean;
    readonly type: string;
    readonly shape: readonly (number | string)[];
  }[];
  run(
    feeds: Readonly<Record<string, object>>,
  ): Promise<
    Readonly<
      Record<
        string,
        { readonly dims: readonly number[]; readonly type: string; readonly data: NodeJS.TypedArray }
      >
    >
  >;
}

const source = fileURLToPath(new URL("./onnxruntime", import.meta.url));
const folder = fileURLToPath(new URL("../../build/onnxruntime", import.meta.url));

/** Loads onnxruntime; the first time installs it below build/, without its script, which would fetch libraries of CUDA. */
export function loadOnnxRuntime(): OnnxRuntime {
  if (!existsSync(join(folder, "node_modules", ".package-lock.json"))) {
    mkdirSync(folder, { recursive: true });
    for (const file of ["package.json", "package-lock.json"]) cpSync(join(source, file), join(folder, file));
    execFileSync("npm", ["ci", "--ignore-scripts", "--no-audit", "--loglevel=error"], { cwd: folder });
  }
  // onnxruntime-node cannot read this type of Node 24; without it, the runtime takes arrays of bits.
  Reflect.deleteProperty(globalThis, "Float16Array");
  return createRequire(join(folder, "package.json"))("onnxruntime-node") as OnnxRuntime;
}
