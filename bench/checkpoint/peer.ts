import { spawn } from "node:child_process";
import { once } from "node:events";
import { text } from "node:stream/consumers";

/** The figures that the PyTorch peer script measures. */
export interface PeerFigures {
  readonly torch: string;
  readonly asyncBlockedMs: number;
  readonly asyncDoneMs: number;
  readonly saveMs: number;
  readonly loadMs: number;
  /** A plain write and fsync of as many bytes. */
  readonly rawMs: number;
}

/** @param script - prints one JSON object on its last line */
export async function runPeer(
  python: string,
  script: string,
  numParameters: number,
  folder: string,
): Promise<PeerFigures> {
  const child = spawn(python, [script, String(numParameters), folder], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  const [out, [code]] = await Promise.all([text(child.stdout), once(child, "close")]);
  if (code !== 0)
    throw new Error(`[bench checkpoint] expected ${python} ${script} to end with 0: got ${code}`);
  const answer = JSON.parse(out.trimEnd().split("\n").at(-1) ?? "") as Record<string, number | string>;
  const ms = (name: string) => 1000 * Number(answer[name]);
  return {
    torch: String(answer.torch),
    asyncBlockedMs: ms("dcp_async_blocked_s_1"),
    asyncDoneMs: ms("dcp_async_done_s_1"),
    saveMs: ms("dcp_save_s"),
    loadMs: ms("dcp_load_s"),
    rawMs: ms("raw_write_fsync_s"),
  };
}
