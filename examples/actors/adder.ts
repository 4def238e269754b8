// An actor that computes with tensors that it is sent.
import { defineActor } from "troupe/actors";
import { attach, moveRef, type TensorRef } from "troupe/tensor";

export type Adder = {
  sum: { in: { tensor: TensorRef }; out: number };
  double: { in: { tensor: TensorRef }; out: { tensor: TensorRef } };
};

export default defineActor<Adder>({
  start: () => ({
    handlers: {
      sum({ tensor }) {
        using numbers = attach(tensor);
        using sum = numbers.sum();
        return sum.item();
      },
      double({ tensor }) {
        using numbers = attach(tensor);
        return { tensor: moveRef(numbers.mul(2)) };
      },
    },
  }),
});
