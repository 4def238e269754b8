import type { Tensor } from "../../compute/tensor/index.ts";
import { TroupeError } from "../../errors/index.ts";

/**
 * Checks the shape of pictures.
 * @param pixels - [B, channels, height, width], float
 * @throws {TroupeError} `MODEL_INPUT` for another shape than the model's
 */
export function checkPixels(
  where: string,
  pixels: Tensor,
  expected: readonly [number, number, number],
): void {
  const { shape } = pixels;
  if (shape.length === 4 && shape.slice(1).join() === expected.join()) return;
  throw new TroupeError("MODEL_INPUT", {
    where,
    expected: `pixels of [batch, ${expected.join(", ")}]`,
    got: `[${shape}]`,
    hint: "resize the pictures, or set image_size and num_channels",
    fields: { shape, expected },
  });
}
