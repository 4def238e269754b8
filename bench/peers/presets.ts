/** One side of a comparison: what is run, under which name it is reported. */
export interface Contender {
  readonly name: string;
  /** A shell command line whose last line on standard output is the JSON object that the peer script prints. */
  readonly command: string;
}

/** Where a Python with torch and the PyTorch peer script are. */
export interface PeerPaths {
  readonly python: string;
  readonly script: string;
}

interface Preset {
  /** Flags that both sides take alike. */
  readonly model: string;
  /** How the same number of tokens a step is spread over ranks. */
  readonly ours: string;
  readonly peers: Readonly<Record<string, string>>;
}

const twoRanks = "--ranks 2 --threads 1 --strategy fsdp";
const oneProcess = "--ranks 1 --threads 2 --strategy none";

/** The comparisons that the project is judged by; for a machine of two cores. */
const presets = {
  /** nanoGPT's CPU configuration: 768 tokens a step. */
  small: {
    model: "--dtype fp32 --layers 4 --dim 128 --heads 4 --vocab 65 --seq 64 --warmup 20 --steps 200",
    ours: `${twoRanks} --batch 6`,
    peers: {
      eager: `${oneProcess} --batch 12`,
      compile: `${oneProcess} --batch 12 --compile`,
      fsdp2: `${twoRanks} --batch 6`,
    },
  },
  /** GPT-2 124M: 1,024 tokens a step. */
  gpt2: {
    model: "--dtype bf16 --layers 12 --dim 768 --heads 12 --vocab 50257 --seq 256 --warmup 2 --steps 5",
    ours: `${twoRanks} --batch 2`,
    peers: {
      eager: `${oneProcess} --batch 4`,
      compile: `${oneProcess} --batch 4 --compile`,
      fsdp2: `${twoRanks} --batch 2`,
    },
  },
} as const satisfies Readonly<Record<string, Preset>>;

/** Names that `--preset` takes. */
export const presetNames = Object.keys(presets);

/**
 * @param name - one of {@link presetNames}
 * @returns the flags of `bench gpt` and the peers' command lines; undefined for another name
 */
export function presetOf(
  name: string,
  { python, script }: PeerPaths,
): { readonly ours: string; readonly peers: readonly Contender[] } | undefined {
  const preset = (presets as Readonly<Record<string, Preset>>)[name];
  return (
    preset && {
      ours: `${preset.model} ${preset.ours}`,
      peers: Object.entries(preset.peers).map(([peer, flags]) => ({
        name: peer,
        command: `'${python}' '${script}' ${preset.model} ${flags}`,
      })),
    }
  );
}
