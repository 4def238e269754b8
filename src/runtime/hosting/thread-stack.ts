import type { Session } from "node:inspector";
import { setTimeout as pause } from "node:timers/promises";
import type { Worker } from "node:worker_threads";

/** A message of a thread's debugger, in V8's inspector protocol. */
type DebuggerMessage =
  | { readonly method: "Debugger.scriptParsed"; readonly params: { scriptId: string; url: string } }
  | { readonly method: "Debugger.paused"; readonly params: { readonly callFrames: readonly CallFrame[] } };

interface CallFrame {
  readonly functionName: string;
  /** Lines and columns from 0. */
  readonly location: {
    readonly scriptId: string;
    readonly lineNumber: number;
    readonly columnNumber?: number;
  };
}

/** How long to wait for the thread to pause, which native code prevents. */
const PATIENCE_MS = 1_000;

/**
 * Returns the stack of a thread whose code does not return, for instance because of an endless loop. The thread is paused
 * meanwhile; no port is opened.
 * @returns lines as in an error's stack, without the message; undefined if the thread is in native code or has ended
 */
export async function stackOf(worker: Worker): Promise<string | undefined> {
  // Loaded only when needed.
  const inspector = await import("node:inspector");
  const session = new inspector.Session();
  session.connect();
  // Not when the wait is over: a thread that is paused later must still be released, or it could not even be terminated.
  const found = pausedStack(session, worker.threadId).finally(() => session.disconnect());
  worker.once("exit", () => session.disconnect());
  try {
    return await Promise.race([found, pause(PATIENCE_MS, undefined)]);
  } catch {
    return undefined; // it has ended meanwhile
  }
}

function pausedStack(session: Session, threadId: number): Promise<string> {
  const scripts = new Map<string, string>();
  return new Promise((resolve, reject) => {
    session.on("NodeWorker.attachedToWorker", ({ params: { sessionId, workerInfo } }) => {
      if (!workerInfo.title.startsWith(`[worker ${threadId}]`)) return;
      for (const [index, method] of ["Debugger.enable", "Debugger.pause"].entries()) {
        const message = JSON.stringify({ id: index, method });
        session.post("NodeWorker.sendMessageToWorker", { sessionId, message });
      }
    });
    session.on("NodeWorker.receivedMessageFromWorker", ({ params }) => {
      const { sessionId } = params;
      const message = JSON.parse(params.message) as DebuggerMessage;
      if (message.method === "Debugger.scriptParsed")
        scripts.set(message.params.scriptId, message.params.url);
      if (message.method !== "Debugger.paused") return;
      const lines = message.params.callFrames.flatMap((frame) => lineOf(frame, scripts));
      // A paused thread could not even be terminated.
      session.post("NodeWorker.detach", { sessionId }, () => resolve(lines.join("\n")));
    });
    session.post("NodeWorker.enable", { waitForDebuggerOnStart: false }, (error) => {
      if (error !== null) reject(error);
    });
  });
}

function lineOf({ functionName, location }: CallFrame, scripts: ReadonlyMap<string, string>): string[] {
  const { scriptId, lineNumber, columnNumber = 0 } = location;
  const url = scripts.get(scriptId) ?? "";
  const place = `${url}:${lineNumber + 1}:${columnNumber + 1}`;
  return url === "" ? [] : [`    at ${functionName || "<anonymous>"} (${place})`];
}
