// Runs GGUF files by llama.cpp.
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { installed } from "./installed.ts";

/** The parts of node-llama-cpp that tests use. */
interface NodeLlamaCpp {
  getLlama(options: {
    readonly gpu: false;
    readonly build: "never";
    readonly logLevel: string;
    readonly maxThreads: number;
  }): Promise<{ loadModel(options: { readonly modelPath: string }): Promise<LlamaModel> }>;
}

interface LlamaModel {
  readonly fileInfo: { readonly metadata: Readonly<Record<string, unknown>> };
  readonly tokens: { readonly bos: number | null; readonly eos: number | null };
  tokenize(text: string, specialTokens?: boolean): readonly number[];
  detokenize(tokens: readonly number[]): string;
  createContext(options: object): Promise<LlamaContext>;
  createEmbeddingContext(options: object): Promise<EmbeddingContext>;
  dispose(): Promise<void>;
}

interface LlamaContext {
  getSequence(): LlamaSequence;
}

/** Gives vectors of texts, or a classifier's scores: those that its public method cuts to one are read below it. */
interface EmbeddingContext {
  getEmbeddingFor(tokens: readonly number[]): Promise<{ readonly vector: readonly number[] }>;
  readonly _llamaContext: { readonly _ctx: { getEmbedding(numTokens: number, size: number): Float64Array } };
}

interface LlamaSequence {
  controlledEvaluate(
    input: readonly (readonly [number, object])[],
  ): Promise<readonly { readonly next: { readonly logits: ReadonlyMap<number, number> } }[]>;
  clearHistory(): Promise<void>;
}

const folder = installed("llama-cpp");
const { getLlama } = (await import(
  pathToFileURL(join(folder, "node_modules/node-llama-cpp/dist/index.js")).href
)) as NodeLlamaCpp;
const llama = await getLlama({ gpu: false, build: "never", logLevel: "error", maxThreads: 1 });

/** An open file. Keys and values are kept in float32. */
export class LlamaFile implements AsyncDisposable {
  readonly model: LlamaModel;
  #sequence: LlamaSequence | undefined;
  #texts: EmbeddingContext | undefined;

  private constructor(model: LlamaModel) {
    this.model = model;
  }

  static async open(modelPath: string): Promise<LlamaFile> {
    return new LlamaFile(await llama.loadModel({ modelPath }));
  }

  /** Scores of the next token behind each of some tokens. @returns [tokens, vocabulary] */
  async logits(tokens: readonly number[], { isNew = true } = {}): Promise<number[][]> {
    this.#sequence ??= (
      await this.model.createContext({
        contextSize: 256,
        flashAttention: false,
        experimentalKvCacheKeyType: "F32",
        experimentalKvCacheValueType: "F32",
      })
    ).getSequence();
    if (isNew) await this.#sequence.clearHistory();
    const made = await this.#sequence.controlledEvaluate(
      tokens.map((token) => [token, { generateNext: { logits: true } }]),
    );
    return made.map(({ next: { logits } }) => {
      const row = Array<number>(logits.size).fill(Number.NaN);
      for (const [token, logit] of logits) row[token] = logit;
      return row;
    });
  }

  /** The likeliest next tokens, one by one. @returns the prompt with them */
  async written(prompt: readonly number[], numTokens: number): Promise<number[]> {
    const text = [...prompt];
    let given: readonly number[] = prompt;
    for (let step = 0; step < numTokens; step++) {
      const last = (await this.logits(given, { isNew: step === 0 })).at(-1) ?? [];
      const next = last.indexOf(last.reduce((most, each) => Math.max(most, each)));
      text.push(next);
      given = [next];
    }
    return text;
  }

  /** A text's vector, or the scores of a classifier. @param size - numbers of it */
  async vector(tokens: readonly number[], size: number): Promise<number[]> {
    this.#texts ??= await this.model.createEmbeddingContext({ contextSize: 64 });
    await this.#texts.getEmbeddingFor([...tokens]);
    return [...this.#texts._llamaContext._ctx.getEmbedding(tokens.length, size)];
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.model.dispose();
  }
}
