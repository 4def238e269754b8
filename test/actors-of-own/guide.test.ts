import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { expect, onTestFinished, test } from "vitest";

const examples = fileURLToPath(new URL("../../examples/actors", import.meta.url));
const root = fileURLToPath(new URL("../..", import.meta.url));

function run(file: string): string {
  const options = { cwd: root, encoding: "utf8", timeout: 300_000 } as const;
  return execFileSync(process.execPath, [`${examples}/${file}`], options);
}

function start(file: string, env: Record<string, string> = {}): ChildProcess {
  const started = spawn(process.execPath, [`${examples}/${file}`], {
    cwd: root,
    env: { ...process.env, ...env },
    stdio: ["ignore", "pipe", "inherit"],
  });
  onTestFinished(() => void started.kill("SIGKILL"));
  return started;
}

test.each([
  ["ask.ts", "6\n"],
  [
    "pool.ts",
    "a will, in black\na deed, in black\nclerks-3 starts again: the ink is spilt\n0 texts after the restart\n",
  ],
  ["tensors.ts", "10\nBigInt64Array(5) [ 0n, 2n, 4n, 6n, 8n ]\n"],
  ["train.ts", "4 steps, 4 heard of, marks 4 4 4 4\n"],
])("the guide's %s prints what the guide says", (file, printed) => {
  expect(run(file)).toBe(printed);
});

test("the guide's pool has an actor on each of two hosts", async () => {
  const head = start("office.ts");
  let printed = "";
  const invited = Promise.withResolvers<string>();
  head.stdout?.setEncoding("utf8").on("data", (text: string) => {
    printed += text;
    const invitation = /^INVITATION=(.*)\n/m.exec(printed)?.[1];
    if (invitation !== undefined) invited.resolve(invitation);
  });
  const branch = start("branch.ts", { INVITATION: await invited.promise });
  const ends = await Promise.all([head, branch].map((started) => once(started, "exit")));
  expect(ends.map(([code]) => code)).toEqual([0, 0]);
  expect(printed).toContain(
    "branch has joined\nclerks-0 clerks-1\nhosts clerks-0: 0, clerks-1: 1, clerks: 0\n",
  );
});
