import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { expect, it } from "vitest";

const child = fileURLToPath(new URL("../../scripts/setup/child.mjs", import.meta.url));

/** A process that hands over to a Node which runs `program`. */
function handOver(program: string, stderr: "inherit" | "pipe" = "inherit"): ChildProcess {
  const script = `import { handOver } from ${JSON.stringify(child)};
    process.exitCode = await handOver(process.execPath, ["-e", ${JSON.stringify(program)}]);`;
  return spawn(process.execPath, ["--input-type=module", "-e", script], {
    stdio: ["pipe", "pipe", stderr],
  });
}

async function textOf(stream: ChildProcess["stdout"]): Promise<string> {
  let text = "";
  for await (const chunk of stream ?? []) text += String(chunk);
  return text;
}

it("ends with the program's exit code", async () => {
  const [code] = await once(handOver("process.exitCode = 2"), "close");
  expect(code).toBe(2);
});

it("passes stdin and stdout through", async () => {
  const process = handOver("process.stdin.pipe(process.stdout)");
  process.stdin?.end("to be trained on");
  expect(await textOf(process.stdout)).toBe("to be trained on");
});

it("passes a signal on and waits for the program to end", async () => {
  const program = `process.once("SIGTERM", () => process.exit(7)); console.log("ready"); setInterval(() => {}, 1000)`;
  const process = handOver(program);
  const closed = once(process, "close");
  process.stdout?.once("data", () => process.kill("SIGTERM"));
  const [code] = await closed;
  expect(code).toBe(7);
});

it("ends with 128 + the signal's number when a signal ended the program, and says so", async () => {
  const process = handOver("process.kill(process.pid, 'SIGKILL')", "pipe");
  const [words, [code]] = await Promise.all([textOf(process.stderr), once(process, "close")]);
  expect(words).toMatch(/was ended by SIGKILL/);
  expect(code).toBe(128 + 9);
});
