import {
  attach,
  empty,
  emptyShared,
  moveRef,
  releaseRef,
  scope,
  type TensorRef,
} from "../../src/compute/tensor/index.ts";
import { type ActorRef, defineActor } from "../../src/runtime/index.ts";

/** Moves tensors to another actor and takes them back. */
export type TensorEchoProtocol = {
  echo: { in: TensorRef; out: TensorRef };
  /** Microseconds of a round trip with a tensor of so many float32, in memory that processes share if asked to. */
  trips: {
    in: { on: ActorRef<TensorEchoProtocol>; numel: number; count: number; shared: boolean };
    out: number;
  };
};

/** Takes a tensor into this thread and gives it away again, inside a scope, as whatever computes with it would. */
function pass(ref: TensorRef): TensorRef {
  return scope(() => moveRef(attach(ref)));
}

export default defineActor<TensorEchoProtocol>({
  start() {
    return {
      handlers: {
        echo: pass,
        async trips({ on, numel, count, shared }) {
          let ref = scope(() => moveRef(shared ? emptyShared([numel]) : empty([numel])));
          const startMs = performance.now();
          for (let trip = 0; trip < count; trip++) {
            ref = pass(await on.ask("echo", ref, { deadlineMs: 10_000 }));
          }
          const figure = ((performance.now() - startMs) * 1_000) / count;
          releaseRef(ref);
          return figure;
        },
      },
    };
  },
});
