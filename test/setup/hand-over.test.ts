import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { expect, it } from "vitest";

const child = fileURLToPath(new URL("../../scripts/setup/child.mjs", import.meta.url));

/** A process that hands over to a Node which runs `program`. */
function handOver(program: string): ChildProcess {
  const script = `import { handOver } from ${JSON.stringify(child)};
    process.exitCode = await handOver(process.execPath, ["-e", ${JSON.stringify(program)}]);`;
  return spawn(process.execPath, ["--input-type=module", "-e", script], {
    stdio: ["pipe", "pipe", "inherit"],
  });
}

async function stdoutOf(process: ChildProcess): Promise<string> {
  let text = "";
  for await (const chunk of process.stdout ?? []) text += String(chunk);
  return text;
}

it("ends with the program's exit code", async () => {
  const [code] = await once(handOver("process.exitCode = 2"), "close");
  expect(code).toBe(2);
});

it("passes stdin and stdout through", async () => {
  const process = handOver("process.stdin.pipe(process.stdout)");
  process.stdin?.end("to be trained on");
  expect(await stdoutOf(process)).toBe("to be trained on");
});

it("passes a signal on and waits for the program to end", async () => {
  const program = `process.once("SIGTERM", () => process.exit(7)); console.log("ready"); setInterval(() => {}, 1000)`;
  const process = handOver(program);
  const closed = once(process, "close");
  process.stdout?.once("data", () => process.kill("SIGTERM"));
  const [code] = await closed;
  expect(code).toBe(7);
});

it("ends with 128 + the signal's number when a signal ended the program", async () => {
  const [code] = await once(handOver("process.kill(process.pid, 'SIGKILL')"), "close");
  expect(code).toBe(128 + 9);
});
