import { spawnSync } from "node:child_process";
import { type ResourceLimits, resourceLimits, threadName } from "node:worker_threads";
import { type ActorRef, defineActor } from "../../../src/runtime/index.ts";
import { endThread } from "../../fixtures/end-thread.ts";
import { waitAtGate } from "./shared-words.ts";

/** Answers, counts and fails on demand: the plainest actor of these tests. */
export type EchoProtocol = {
  echo: { in: unknown; out: unknown };
  relay: { in: { to: ActorRef<EchoProtocol>; message: unknown }; out: unknown };
  relayFar: {
    in: { via: ActorRef<EchoProtocol>; to: ActorRef<EchoProtocol>; message: unknown };
    out: unknown;
  };
  /** Waits for an answer that never comes. */
  relayHold: { in: { to: ActorRef<EchoProtocol> }; out: null };
  note: { in: number };
  noted: { in: null; out: readonly number[] };
  fail: { in: string };
  refuse: { in: string; out: never };
  exit: { in: number };
  /** Asks for an echo and for an answer behind a gate, and never reads the answers. */
  askTwiceAndBlock: { in: { of: ActorRef<EchoProtocol>; first: string; second: string } };
  noteToSelf: { in: { self: ActorRef<EchoProtocol>; value: number }; out: null };
  threadName: { in: null; out: string };
  limits: { in: null; out: ResourceLimits };
  environmentNames: { in: null; out: readonly string[] };
  /** Waits in native code for a program to end. */
  runProgram: { in: string };
  /** Fills its heap. */
  eat: { in: null };
  /** Answers with what cannot be sent. */
  unsendable: { in: null; out: unknown };
  relayUnsendable: { in: { to: ActorRef<EchoProtocol> }; out: unknown };
  /** Answers later, with what no codec can encode. */
  unencodable: { in: null; out: unknown };
  /** Never answers. */
  hold: { in: null; out: null };
  /** Answers once the gate is open, blocking its thread until then. */
  answerAfter: { in: string; out: string };
  /** Fails outside any handler. */
  failLater: { in: string };
};

export default defineActor<EchoProtocol>({
  concurrent: ["hold", "unsendable"],
  start(context) {
    const notes: number[] = [];
    return {
      handlers: {
        echo: (message) => message,
        relay: ({ to, message }) => to.ask("echo", message, { deadlineMs: 10_000 }),
        relayFar: ({ via, to, message }) => via.ask("relay", { to, message }, { deadlineMs: 10_000 }),
        relayHold: ({ to }) => to.ask("hold", null, { deadlineMs: 60_000 }),
        note(value) {
          notes.push(value);
        },
        noted: () => notes,
        fail(reason) {
          throw new Error(reason);
        },
        refuse(reason) {
          throw new Error(reason);
        },
        async askTwiceAndBlock({ of, first, second }) {
          await context.connect(of);
          const answers = [
            of.ask("echo", first, { deadlineMs: 60_000 }),
            of.ask("answerAfter", second, { deadlineMs: 60_000 }),
          ];
          context.emit("asked");
          context.flush();
          Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);
          await Promise.all(answers);
        },
        noteToSelf({ self, value }) {
          self.tell("note", value);
          return null;
        },
        environmentNames: () => Object.keys(process.env),
        threadName: () => String(threadName),
        limits: () => resourceLimits,
        runProgram(commandLine) {
          const [command = "", ...args] = commandLine.split(" ");
          context.emit(`runs ${commandLine}`);
          context.flush();
          spawnSync(command, args);
        },
        eat() {
          const eaten: number[][] = [];
          for (;;) eaten.push(new Array(10_000).fill(eaten.length));
        },
        unsendable: () => () => {},
        relayUnsendable: ({ to }) => to.ask("unsendable", null, { deadlineMs: 10_000 }),
        async unencodable() {
          const endless: unknown[] = [];
          endless.push(endless);
          return endless;
        },
        hold: () => new Promise<null>(() => {}),
        answerAfter(gate) {
          waitAtGate(gate);
          return "late";
        },
        failLater(reason) {
          setImmediate(() => {
            throw new Error(reason);
          });
        },
        exit(code) {
          endThread(code);
        },
      },
    };
  },
});
