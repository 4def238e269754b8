// npx node examples/rapidformer/run.ts NAME: makes the data where it is missing, and runs NAME.sh of this folder.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { prepare } from "./prepare.ts";

const here = fileURLToPath(new URL(".", import.meta.url));
const folder = process.env.RAPIDFORMER_DATA ?? join(here, "data");
const [name = "finetune", ...flags] = process.argv.slice(2);

await prepare(folder);
const rapidformer = fileURLToPath(new URL("../../bin/rapidformer.mjs", import.meta.url));
// The working directory is the folder with the scripts and the names.
const child = spawn(process.execPath, [rapidformer, join(here, `${name}.sh`), ...flags], {
  cwd: folder,
  stdio: "inherit",
  env: { ...process.env, HERE: here },
});
const [code] = (await once(child, "exit")) as [number | null];
process.exitCode = code ?? 1;
