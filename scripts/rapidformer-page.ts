import { type Fate, type Flag, flagGroups } from "../src/job/rapidformer/index.ts";
import { scriptNames } from "./rapidformer-names.ts";

/** The text of docs/reference/rapidformer.md: every flag, and what becomes of it. */
export function rapidformerPage(): string {
  const sections = Object.entries(flagGroups).map(
    ([group, flags]) => `## ${group}

| flag | takes | becomes | meaning |
| --- | --- | --- | --- |
${flags.map(rowOf).join("\n")}
`,
  );
  return `# Rapidformer's command line

\`rapidformer …\` is \`troupe rapidformer …\`: it takes Rapidformer's flags, and those of Megatron-LM of 2022 that Rapidformer's
parser knows. \`troupe finetune\` and \`troupe pretrain\` take the same flags. Rapidformer's documentation shows those in bold. This page
is generated from \`src/job/rapidformer/flags.ts\` and \`scripts/rapidformer-names.ts\` by \`npm run docs:write\`.

| how | what |
| --- | --- |
| \`rapidformer --task … --lr 2e-5\` | flags with dashes or underscores, or \`--lr=2e-5\`; if a flag is given twice, the last counts |
| \`rapidformer run.sh\` | the one rapidformer command of a shell script, parsed as text: exports, variables, comments after backslashes; flags after the script override its own |
| \`--ranks 2\`, \`--checkpoint runs/a\`, … | every option of [troupe run](options.md); it overrides a Rapidformer flag for the same setting |
| \`--print-config\` | every option and setting with its value and the flag that set it; nothing is trained |
| \`--print-argv\` | the parsed flags |

| variable | what |
| --- | --- |
| \`CUDA_VISIBLE_DEVICES\` | one rank for each listed device; \`--ranks\` overrides it |
| \`NNODES\`, \`NODE_RANK\` | number of hosts that run the same command, and this host's index from 0; each has equally many ranks ([hosts](../guide/several-hosts.md)) |
| \`MASTER_ADDR\`, \`MASTER_PORT\` | rendezvous of several hosts; without effect on a single host |
| \`TROUPE_HUB\` | file with names of models and data, instead of \`troupe-hub.toml\` in the working directory |
| \`HF_ENDPOINT\`, \`HF_TOKEN\`, \`HF_HUB_OFFLINE\`, \`HF_HOME\`, \`HF_HUB_CACHE\` | where names are downloaded from, with which token, whether at all, and where to ([hubs](../guide/hubs.md)) |

A **setting** belongs to the job: \`--set lr=1e-4\` sets it too, and a template reads it as \`getArgs().lr\`. An **option** belongs to the
runtime. A flag **without effect** is reported with the reason when a run starts; a **refused** flag prevents the start.
A flag that the run would not read is refused by name: \`--mask-prob\` for a fine-tuned task, \`--eod-mask-loss\` for BERT;
a template gets all flags from \`getArgs()\`.

Where Rapidformer's documentation leaves a choice: a global batch that the replicas cannot share evenly is refused with three ways
out; so are more stages than ranks. An epoch's steps are full batches, and its remaining samples start the next epoch.
A run that is shorter than its warm-up ends in it. ZeRO 2 works with a pipeline. "Next sentence" is Megatron's: the two parts
of one document are swapped. \`casual_lm\`, \`--vocab\` and \`--dataset-name\` are accepted as other spellings.

${sections.join("\n")}
## Names in scripts

Imports of scripts, by the names of Rapidformer and of Megatron's \`mpu\`; from \`troupe/rapidformer\`, metrics from \`troupe/tasks\`.

| there | here | what |
| --- | --- | --- |
${scriptNames
  .map(
    ({ theirs, here, meaning }) =>
      `| ${theirs
        .split(", ")
        .map((name) => `\`${name}\``)
        .join(", ")} | \`${here}\` | ${meaning} |`,
  )
  .join("\n")}
`;
}

function rowOf({ flag, also, takes, fate, meaning, isShown }: Flag): string {
  const names = [flag, ...also].map((name) => `\`${name}\``).join(", ");
  const values = typeof takes === "string" ? (takes === "nothing" ? "" : takes) : takes.join(", ");
  const cells = [
    isShown ? `**${names}**` : names,
    values,
    describe(fate),
    fate.is === "refused" ? "" : meaning,
  ];
  return `| ${cells.map((cell) => cell.replaceAll("|", "\\|")).join(" | ")} |`;
}

function describe(fate: Fate): string {
  switch (fate.is) {
    case "setting": {
      const standard = fate.standard === "" ? "" : `, ${fate.standard} unless given`;
      return `setting \`${fate.name}\`${fate.value === undefined ? "" : ` = ${fate.value}`}${standard}`;
    }
    case "option":
      return `option \`${fate.path}\`${fate.value === undefined ? "" : ` = ${fate.value}`}`;
    case "derived":
      return fate.to;
    case "no-op":
      return "without effect";
    case "refused":
      return `refused: use ${fate.use}`;
    default:
      return fate satisfies never;
  }
}
