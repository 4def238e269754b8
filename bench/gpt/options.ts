import { countOf } from "../../scripts/arguments.mjs";

/** The peer's strategies as ZeRO levels. */
export const zeroOf: Record<string, number> = { none: 0, ddp: 0, zero1: 1, zero2: 2, fsdp: 3 };

const text = { type: "string" } as const;

/** A GPT's options, as `readArguments` takes them. */
export const gptOptions = {
  ranks: { ...text, default: "1" },
  threads: text,
  dtype: { ...text, default: "bf16" },
  strategy: text,
  placement: { ...text, default: "thread" },
  layers: { ...text, default: "12" },
  dim: { ...text, default: "768" },
  heads: { ...text, default: "12" },
  vocab: { ...text, default: "50257" },
  batch: { ...text, default: "4" },
  seq: { ...text, default: "256" },
  steps: { ...text, default: "5" },
  warmup: { ...text, default: "3" },
  lr: { ...text, default: "3e-4" },
  data: { ...text, default: "" },
  seed: { ...text, default: "0" },
  dropout: { ...text, default: "0" },
  recompute: { ...text, default: "no" },
  between: { ...text, default: "0" },
} as const;

/** A line of usage for each of {@link gptOptions}. */
export const gptUsage = `
  --ranks N         (1)
  --threads N       of each rank (its share of the cores)
  --placement NAME  thread or process (thread)
  --strategy NAME   ${Object.keys(zeroOf).join(", ")} (fsdp for several ranks, none for one)
  --dtype NAME      fp32 or bf16 (bf16)
  --layers N        (12)
  --dim N           (768)
  --heads N         (12)
  --vocab N         (50257)
  --batch N         samples of each rank (4)
  --seq N           tokens of a sample (256)
  --steps N         that are timed (5)
  --warmup N        before them (3: the first checks gradients, two record)
  --lr RATE         (3e-4)
  --data FILE       bytes that are learnt (random tokens)
  --seed N          (0)
  --dropout RATE    (0)
  --recompute WHAT  no, or blocks: their activations are computed again in backward (no)
  --between MS      of products between steps, for the rate that cores have just then; with --threads 1 (0)`;

type Count = "ranks" | "layers" | "dim" | "heads" | "vocab" | "batch" | "seq" | "steps";

/** Reads one of a GPT's counts from its flags; anything but a whole number from 1 on ends the process. */
export function countIn(usage: string, flags: Readonly<Record<Count, string>>, option: Count): number {
  return countOf(usage, option, flags[option]);
}
