import type { Command } from "commander";
import { bytes, number } from "../flags.ts";
import { convertCheckpoint } from "./convert.ts";
import { inspectCheckpoint } from "./inspect.ts";
import { joinCheckpoint } from "./join.ts";
import { listCheckpointsCommand } from "./list.ts";
import { pruneCheckpoints } from "./prune.ts";
import { serveCheckpoints } from "./serve.ts";
import { verifyCheckpoints } from "./verify.ts";

/** Adds `troupe checkpoint list | inspect | verify | join | prune | convert | serve`. */
export function addCheckpointCommand(program: Command): void {
  const checkpoint = program
    .command("checkpoint")
    .description("look at, check, convert and keep checkpoints");
  const place = "folder of a run or of one checkpoint, or s3://BUCKET/PREFIX";
  checkpoint
    .command("list")
    .description("the checkpoints of a run, the newest first")
    .argument("<run>", place)
    .option("--json", "print one JSON object", false)
    .action(listCheckpointsCommand);
  checkpoint
    .command("inspect")
    .description("what a checkpoint holds: where the run stood, its tensors, its files")
    .argument("<checkpoint>", `${place}: then its newest whole one`)
    .option("--step <n>", "the checkpoint of that step", number)
    .option("--json", "print one JSON object", false)
    .action(inspectCheckpoint);
  checkpoint
    .command("verify")
    .description("read every byte and compare it with what was saved; exits with 1 where anything is damaged")
    .argument("<run>", place)
    .option("--step <n>", "only the checkpoint of that step", number)
    .option("--json", "print one JSON object", false)
    .action(verifyCheckpoints);
  checkpoint
    .command("join")
    .description(
      "bring together in one folder what hosts have kept of a checkpoint, each on a disk of its own; every byte is checked",
    )
    .argument("<checkpoint>", "where its manifest is: the folder that host 0 has")
    .argument("<folders...>", "copies of the other hosts' folders, of the same checkpoint or of its run")
    .option("--json", "print one JSON object", false)
    .action(joinCheckpoint);
  checkpoint
    .command("prune")
    .description("remove checkpoints that need not be kept; never the newest whole ones")
    .argument("<run>", "folder of a run, or s3://BUCKET/PREFIX")
    .requiredOption("--keep-last <n>", "how many of the newest whole ones to keep", number)
    .option("--keep-every <n>", "keep those whose step is a multiple of this, too", number)
    .option("--dry-run", "tell what would be removed, and remove nothing", false)
    .option("--json", "print one JSON object", false)
    .action(pruneCheckpoints);
  checkpoint
    .command("convert")
    .description(
      "write a model in another form, bit by bit: Hugging Face, Megatron-LM, FairSeq, ModelCenter, safetensors, a checkpoint",
    )
    .argument(
      "<source>",
      "a checkpoint, a Hugging Face folder, a folder of Megatron-LM, GPT-NeoX or ModelCenter, or one file of safetensors or torch.save (FairSeq's with --config)",
    )
    .argument("<target>", "where nothing is yet")
    .requiredOption("--to <form>", "hf, megatron, fairseq, modelcenter, safetensors or troupe")
    .option("--config <file>", "the model's config.json, where the source has none")
    .option("--max-file-size <size>", "largest file of weights, such as 5GiB (default: 5GiB)", bytes)
    .option("--with-optimizer", "with --to safetensors: what the optimizer keeps, too", false)
    .option("--tp <n>", "with --to megatron: tensor-parallel ranks", number)
    .option("--pp <n>", "with --to megatron: pipeline stages", number)
    .option("--megatron-version <n>", "checkpoint_version, read or written: 0, 1, 2 or 3", number)
    .option("--json", "print one JSON object", false)
    .action(convertCheckpoint);
  checkpoint
    .command("serve")
    .description("let other programs save checkpoints: they hand over tensors by HTTP, on this machine only")
    .requiredOption("--dir <place>", "folder of the checkpoints, or s3://BUCKET/PREFIX")
    .option("--socket <path>", "listen on a Unix socket that only this user can open")
    .option("--port <n>", "listen on a port of 127.0.0.1, 0 for any free one; callers need the token", number)
    .option(
      "--token-file <path>",
      "where the token is kept, made where it is not there (default: DIR/.token)",
    )
    .option("--staging <size>", "most memory in which tensors wait for the disk (default: 4GiB)", bytes)
    .option("--keep-last <n>", "keep that many of the newest (default: all)", number)
    .option("--keep-every <n>", "keep those whose step is a multiple of this, too", number)
    .option("--idle <seconds>", "give up a save that nobody adds to for so long", number, 300)
    .option("--no-verify", "do not read checkpoints again once they are written")
    .option("--json", "print events as JSON lines", false)
    .action(serveCheckpoints);
}
