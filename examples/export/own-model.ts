// A model of one's own as an ONNX file: npx node examples/export/own-model.ts OUT.onnx
import { writeOnnx } from "troupe/export";
import { BatchNorm2d, Conv2d, Linear, Module, materialize } from "troupe/nn";
import type { Tensor } from "troupe/tensor";

/** Scores pictures of any size. */
class Scores extends Module {
  readonly conv = new Conv2d(3, 16, 3, { stride: 2 });
  readonly norm = new BatchNorm2d(16);
  readonly out = new Linear(16, 10);

  override forward(pixels: Tensor): Tensor {
    const features = this.norm.forward(this.conv.forward(pixels)).relu(); // [B, 16, H′, W′]
    return this.out.forward(features.mean([2, 3])); // [B, 10]
  }
}

const model = new Scores();
materialize(model, { seed: 1 });
const files = await writeOnnx(process.argv[2] ?? "own-model.onnx", model, {
  inputs: { pixels: { shape: ["batch", 3, "height", "width"] } }, // a name stands for any size
  run: ({ pixels }) => ({ scores: model.forward(pixels as Tensor) }),
});
console.log(`wrote ${files.join(", ")}`);
