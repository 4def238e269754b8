import type { Command } from "commander";
import { bytes, number } from "../flags.ts";
import { addPlaceFlags } from "../serving-place.ts";
import { convertCheckpoint } from "./convert.ts";
import { serveCheckpoints } from "./serve.ts";
import {
  inspectCheckpoint,
  joinCheckpoint,
  listCheckpointsCommand,
  pruneCheckpoints,
  verifyCheckpoints,
} from "./stored.ts";

/** Adds `troupe checkpoint list | inspect | verify | join | prune | convert | serve`. */
export function addCheckpointCommand(program: Command): void {
  const checkpoint = program
    .command("checkpoint")
    .description("list, inspect, verify, join, prune, convert and serve checkpoints");
  const place = "folder of a run or of one checkpoint, or s3://BUCKET/PREFIX";
  checkpoint
    .command("list")
    .description("list the checkpoints of a run, the newest first")
    .argument("<run>", place)
    .option("--json", "print one JSON object", false)
    .action(listCheckpointsCommand);
  checkpoint
    .command("inspect")
    .description("show what a checkpoint holds: step, tensors, files")
    .argument("<checkpoint>", `${place}; of a run, its newest undamaged one`)
    .option("--step <n>", "the checkpoint of that step", number)
    .option("--json", "print one JSON object", false)
    .action(inspectCheckpoint);
  checkpoint
    .command("verify")
    .description("read every byte and compare checksums; exits with 1 if anything is damaged")
    .argument("<run>", place)
    .option("--step <n>", "only the checkpoint of that step", number)
    .option("--json", "print one JSON object", false)
    .action(verifyCheckpoints);
  checkpoint
    .command("join")
    .description(
      "copy the parts of a checkpoint that hosts wrote to their own disks into one folder, and check every byte",
    )
    .argument("<checkpoint>", "host 0's folder, which has the manifest")
    .argument("<folders...>", "copies of the other hosts' folders, of the checkpoint or of its run")
    .option("--json", "print one JSON object", false)
    .action(joinCheckpoint);
  checkpoint
    .command("prune")
    .description("remove old checkpoints; never the newest undamaged ones")
    .argument("<run>", "folder of a run, or s3://BUCKET/PREFIX")
    .requiredOption("--keep-last <n>", "how many of the newest undamaged ones to keep", number)
    .option("--keep-every <n>", "also keep those whose step is a multiple of this", number)
    .option("--dry-run", "show what would be removed, and remove nothing", false)
    .option("--json", "print one JSON object", false)
    .action(pruneCheckpoints);
  checkpoint
    .command("convert")
    .description(
      "convert a model without changing a bit: Hugging Face, Megatron-LM, FairSeq, ModelCenter, safetensors, Troupe",
    )
    .argument(
      "<source>",
      "a checkpoint, a Hugging Face folder, a folder of Megatron-LM, GPT-NeoX or ModelCenter, or one file of safetensors or torch.save (FairSeq's with --config)",
    )
    .argument("<target>", "folder or file to write; must not exist")
    .requiredOption("--to <form>", "hf, megatron, fairseq, modelcenter, safetensors or troupe")
    .option("--config <file>", "the model's config.json, if the source has none")
    .option("--max-file-size <size>", "largest file of weights, such as 5GiB (default: 5GiB)", bytes)
    .option("--with-optimizer", "with --to safetensors: include the optimizer state", false)
    .option("--tp <n>", "with --to megatron: tensor-parallel ranks", number)
    .option("--pp <n>", "with --to megatron: pipeline stages", number)
    .option("--megatron-version <n>", "checkpoint_version, read or written: 0, 1, 2 or 3", number)
    .option("--json", "print one JSON object", false)
    .action(convertCheckpoint);
  addPlaceFlags(
    checkpoint
      .command("serve")
      .description("serve checkpoints to other programs on this machine, over HTTP")
      .requiredOption("--dir <place>", "folder of the checkpoints, or s3://BUCKET/PREFIX"),
    "DIR/.token",
  )
    .option("--staging <size>", "most memory for tensors that wait for the disk (default: 4GiB)", bytes)
    .option("--keep-last <n>", "how many of the newest to keep (default: all)", number)
    .option("--keep-every <n>", "also keep those whose step is a multiple of this", number)
    .option("--idle <seconds>", "abandon a save that receives nothing for this long", number, 300)
    .option("--no-verify", "do not read checkpoints back after writing")
    .option("--json", "print events as JSON lines", false)
    .action(serveCheckpoints);
}
