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
parser knows. \`troupe finetune\` and \`troupe pretrain\` take the same. Those in bold stand in the original document. This page
is made of \`src/job/rapidformer/flags.ts\` and \`scripts/rapidformer-names.ts\` by \`npm run docs:rapidformer\`.

| how | what |
| --- | --- |
| \`rapidformer --task … --lr 2e-5\` | flags with dashes or underscores, \`--lr=2e-5\` too; of a flag given twice the last counts |
| \`rapidformer run.sh\` | the one rapidformer command of a shell script, read as it is printed: exports, variables, comments behind backslashes; flags behind the script go before its own |
| \`--ranks 2\`, \`--checkpoint runs/a\`, … | every option of [troupe run](options.md) stands beside them, and goes before what a flag of Rapidformer's says of the same |
| \`--print-config\` | every option and setting with its value and which flag gave it; nothing is trained |
| \`--print-argv\` | the flags as they were read |

| variable | what |
| --- | --- |
| \`CUDA_VISIBLE_DEVICES\` | as many ranks as it lists devices; \`--ranks\` goes before |
| \`NNODES\`, \`NODE_RANK\` | the same command on each of so many hosts, each with its place from 0; as many ranks on every one ([hosts](../guide/several-hosts.md)) |
| \`MASTER_ADDR\`, \`MASTER_PORT\` | the hosts' rendezvous; without effect on one host, whose ranks find each other |
| \`TROUPE_HUB\` | the file with names of models and data, in place of \`troupe-hub.toml\` of the working directory |
| \`HF_ENDPOINT\`, \`HF_TOKEN\`, \`HF_HUB_OFFLINE\`, \`HF_HOME\`, \`HF_HUB_CACHE\` | where names are downloaded from, with whose rights, whether at all, and where to ([hubs](../guide/hubs.md)) |

A **setting** is one of the job's: \`--set lr=1e-4\` gives it too, and a template reads it as \`getArgs().lr\`. An **option** is the
runtime's. A flag **without effect** is reported with its reason when a run begins; a flag that is **refused** stops it before it does.
What the work at hand would not read is refused too, by name: \`--mask-prob\` with the name of a fine-tuned task, \`--eod-mask-loss\` for BERT;
a template has all of them by \`getArgs()\`.

What the original leaves open is settled so: a global batch that the replicas cannot share is refused with three ways out; so are
more stages than ranks. Steps of an epoch are full batches, and the samples left at the end of an epoch begin the next.
A run that is shorter than its warm-up ends in it. ZeRO 2 goes with a pipeline. "Next sentence" is Megatron's: the two parts
of one document change places. \`casual_lm\`, \`--vocab\` and \`--dataset-name\` are known as other spellings.

${sections.join("\n")}
## Names in scripts

What scripts import, by the names of the original and of Megatron's \`mpu\`; from \`troupe/rapidformer\`, metrics from \`troupe/tasks\`.

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
