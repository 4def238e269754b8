import { expectTypeOf, test } from "vitest";
import { type ActorContext, type ActorRef, defineActor, type Handlers } from "../../src/runtime/index.ts";

type Sample = {
  gather: { in: { block: number }; out: { waitedMs: number } };
  release: { in: { block: number } };
  watch: { in: { block: number }; stream: { bytes: number } };
};

// These functions are compiled, not run: the compiler is the test.
function refuses(ref: ActorRef<Sample>, context: ActorContext<Sample>): void {
  // @ts-expect-error: no such kind
  ref.tell("scatter", { block: 1 });
  // @ts-expect-error: wrong payload
  ref.tell("release", { block: "one" });
  // @ts-expect-error: a payload is not optional
  ref.tell("release");
  // @ts-expect-error: a statement has no answer
  void ref.ask("release", { block: 1 }, { deadlineMs: 1 });
  // @ts-expect-error: a question needs a deadline
  void ref.ask("gather", { block: 1 }, {});
  // @ts-expect-error: a stream is no single answer
  void ref.ask("watch", { block: 1 }, { deadlineMs: 1 });
  // @ts-expect-error: a single answer is no stream
  ref.stream("gather", { block: 1 }, { deadlineMs: 1 });
  // @ts-expect-error: a timer's message is one of the actor's own
  context.every(10, "scatter", { block: 1 });
  // @ts-expect-error: only questions can be requested
  context.request(ref, "release", { block: 1 }, { deadlineMs: 1 });
  // @ts-expect-error: no such kind to receive
  context.receive(["scatter"], { deadlineMs: 1 });
  // @ts-expect-error: a ref of another protocol
  const other: ActorRef<{ stop: { in: null } }> = ref;
  void other;
}

function refusesDefinitions(): void {
  const gather = (): { waitedMs: number } => ({ waitedMs: 0 });
  const release = (): void => {};
  function* watch() {
    yield { bytes: 1 };
  }
  const handlers = { gather, release, watch };
  // @ts-expect-error: a handler is missing
  const forgotten: Handlers<Sample> = { gather, watch };
  const wrongAnswer = { ...handlers, gather: () => ({ waited: 0 }) };
  // @ts-expect-error: a handler answers with something else
  const answers: Handlers<Sample> = wrongAnswer;
  const wrongMessage = { ...handlers, gather: (_message: string) => ({ waitedMs: 0 }) };
  // @ts-expect-error: a handler expects something else
  const expects: Handlers<Sample> = wrongMessage;
  const wrongItem = { ...handlers, watch: () => [{ bytes: "one" }].values() };
  // @ts-expect-error: a stream has other items
  const streams: Handlers<Sample> = wrongItem;
  // @ts-expect-error: a handler for a kind that is not there
  const tooMany: Handlers<Sample> = { ...handlers, scatter: () => {} };
  const start = () => ({ handlers });
  // @ts-expect-error: a lane for a kind that is not there
  defineActor<Sample>({ lanes: { scatter: "control" }, start });
  // @ts-expect-error: no such lane
  defineActor<Sample>({ lanes: { gather: "fast" }, start });
  void [forgotten, answers, expects, streams, tooMany];
}

test("DL-20 what an answer and a received message are follows from the protocol", () => {
  const use = (ref: ActorRef<Sample>, context: ActorContext<Sample>): void => {
    expectTypeOf(ref.ask("gather", { block: 1 }, { deadlineMs: 1 })).resolves.toEqualTypeOf<{
      waitedMs: number;
    }>();
    expectTypeOf(ref.tell("release", { block: 1 })).toEqualTypeOf<boolean>();
    const items = ref.stream("watch", { block: 1 }, { deadlineMs: 1 });
    expectTypeOf(items).toEqualTypeOf<AsyncGenerator<{ bytes: number }, void>>();
    const pending = context.request(ref, "gather", { block: 1 }, { deadlineMs: 1 });
    expectTypeOf(context.wait(pending)).toEqualTypeOf<{ waitedMs: number }>();
    const received = context.receive(["gather", "release"], { deadlineMs: 1 });
    if (received.kind === "gather")
      expectTypeOf(received.reply).parameters.toEqualTypeOf<[{ waitedMs: number }]>();
    expectTypeOf(received.message).toEqualTypeOf<{ block: number }>();
  };
  expectTypeOf(use).toBeFunction();
});

test("DL-20 a wrong kind, payload, answer or a forgotten handler does not compile", () => {
  expectTypeOf(refuses).toBeFunction();
  expectTypeOf(refusesDefinitions).toBeFunction();
});
