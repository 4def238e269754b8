import { createRequire } from "node:module";
import { join } from "node:path";
import { installed } from "./installed.ts";

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

/** Loads onnxruntime, without its script, which would fetch libraries of CUDA. */
export function loadOnnxRuntime(): OnnxRuntime {
  const folder = installed("onnxruntime");
  // onnxruntime-node cannot read this type of Node 24; without it, the runtime takes arrays of bits.
  Reflect.deleteProperty(globalThis, "Float16Array");
  return createRequire(join(folder, "package.json"))("onnxruntime-node") as OnnxRuntime;
}
