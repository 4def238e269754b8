import { describe, expect, it } from "vitest";
import { backward, liveTensors, ops, tensor, zeros } from "../../src/compute/tensor/index.ts";
import { TroupeError } from "../../src/errors/index.ts";
import { refusal } from "./numbers.ts";

describe("errors of operators", () => {
  it("name the operator, ndim, shapes and dtypes of the operands", () => {
    const error = refusal(() => zeros([4, 3]).matmul(zeros([5, 2], { dtype: "float32" })));
    expect(error).toEqual({
      code: "TENSOR_OP_FAILED",
      message:
        "[matmul] mat1 and mat2 shapes cannot be multiplied (4x3 and 5x2): " +
        "got self float32[4,3] (ndim 2), other float32[5,2] (ndim 2)",
    });
  });

  it("say of Troupe's own what was expected, what came, and all operands", () => {
    const body = () => ops.troupe.layerNorm(zeros([3, 4]), zeros([3]), undefined, 1e-5);
    expect(refusal(body)?.message).toBe(
      "[troupe::layer_norm] expected weight to have one element per feature, the last dim of x [3, 4], got [3] " +
        "(given x float32[3,4] (ndim 2), weight float32[3] (ndim 1))",
    );
  });

  it("are TroupeErrors with the operands in fields", () => {
    const body = () => zeros([2]).view([3]);
    expect(body).toThrow(TroupeError);
    try {
      body();
    } catch (error) {
      expect(error).toMatchObject({ fields: { op: "view", operands: "self float32[2] (ndim 1)" } });
    }
  });

  it("carry no C++ stack trace", () => {
    const error = refusal(() => zeros([2]).add(zeros([3])));
    expect(error?.message).not.toMatch(/frame #|\.so|\.cpp|0x[0-9a-f]{6}/);
  });

  it("list the first tensors of a list argument", () => {
    const error = refusal(() => ops.cat([zeros([2]), zeros([2, 2])]));
    expect(error?.message).toContain("tensors [float32[2] (ndim 1), float32[2,2] (ndim 2)]");
    const many = refusal(() => ops.stack([...Array.from({ length: 20 }, () => zeros([2])), zeros([3])]));
    expect(many?.message).toContain("21 in all");
  });

  it("name the disposed argument", () => {
    const gone = zeros([2]);
    gone.dispose();
    expect(refusal(() => zeros([2]).add(gone))).toMatchObject({
      code: "TENSOR_DISPOSED",
      message: expect.stringContaining("[add] expected other to be a live tensor of this thread, got "),
    });
    expect(refusal(() => gone.add(1))?.message).toContain("[add] expected self to be");
    expect(refusal(() => ops.cat([zeros([2]), gone]))).toMatchObject({ code: "TENSOR_DISPOSED" });
    expect(refusal(() => ops.linear(zeros([1, 2]), zeros([2, 2]), gone))?.message).toContain(
      "[linear] expected bias to be",
    );
    expect(refusal(() => gone.shape)).toMatchObject({ code: "TENSOR_DISPOSED" });
    expect(refusal(() => gone.item())).toMatchObject({ code: "TENSOR_DISPOSED" });
    expect(refusal(() => gone.toTypedArray())).toMatchObject({ code: "TENSOR_DISPOSED" });
    expect(refusal(() => gone.backward())).toMatchObject({ code: "TENSOR_DISPOSED" });
  });

  it("name the argument that is no tensor, or no list, and what it is", () => {
    const [x, nothing] = [zeros([2, 2]), undefined as never];
    const messageOf = (body: () => unknown) => {
      const { code, message } = refusal(body) ?? {};
      expect(code).toBe("TENSOR_ARGUMENT");
      return message;
    };
    expect(messageOf(() => x.add(nothing))).toBe("[add] expected other to be a tensor, got undefined");
    expect(messageOf(() => ops.linear(x, x, null as never))).toBe(
      "[linear] expected bias to be a tensor, got null",
    );
    expect(messageOf(() => x.matmul([[1]] as never))).toBe(
      "[matmul] expected other to be a tensor, got an Array (tensor(numbers) makes one)",
    );
    expect(messageOf(() => x.matmul(3 as never))).toBe(
      "[matmul] expected other to be a tensor, got number 3",
    );
    expect(messageOf(() => ops.cat([x, nothing]))).toBe(
      "[cat] expected each of tensors to be a tensor, got undefined",
    );
    expect(messageOf(() => ops.cat(nothing))).toBe(
      "[cat] expected tensors to be a list of tensors, got undefined",
    );
    expect(messageOf(() => x.reshape(nothing))).toBe(
      "[reshape] expected shape to be a list of numbers, got undefined",
    );
    expect(messageOf(() => x.softmax(nothing))).toBe("[softmax] expected dim to be a whole number, got none");
    expect(messageOf(() => backward(nothing))).toBe(
      "[backward] expected each of outputs to be a tensor, got undefined",
    );
  });

  it("refuse a fraction where an integer is meant", () => {
    expect(refusal(() => zeros([2, 2]).sum(0.5))).toMatchObject({ code: "TENSOR_ARGUMENT" });
    expect(refusal(() => zeros([2, 2]).transpose(0, Number.NaN))).toMatchObject({ code: "TENSOR_ARGUMENT" });
  });

  it("refuse lists that the argument frame cannot hold", () => {
    const tensors = Array.from({ length: 20_000 }, () => zeros([1]));
    expect(refusal(() => ops.cat(tensors))).toMatchObject({ code: "TENSOR_FRAME_FULL" });
    for (const it of tensors) it.dispose();
  });

  it("keep nothing of a list of results that the frame cannot hold", () => {
    const many = zeros([20_000]);
    const before = liveTensors();
    for (let round = 0; round < 3; round++)
      expect(refusal(() => many.unbind())).toMatchObject({ code: "TENSOR_FRAME_FULL" });
    expect(liveTensors()).toBe(before);
    many.dispose();
  });

  it("say what backward was called with", () => {
    const error = refusal(() => backward(tensor([1, 2])));
    expect(error?.code).toBe("TENSOR_OP_FAILED");
    expect(error?.message).toMatch(
      /^\[backward\] expected outputs with a graph .* got a tensor without one \(.*rank\.backward.*outputs \[float32\[2\] \(ndim 1\)\]/,
    );
  });

  it("leave the thread able to go on", () => {
    for (let i = 0; i < 100; ++i) refusal(() => zeros([2]).matmul(zeros([3])));
    expect(tensor([1]).add(1).item()).toBe(2);
  });
});
