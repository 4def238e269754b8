import { noGrad, scope, type Tensor } from "../tensor/index.ts";

/**
 * Scales gradients in place so that their global L2 norm is at most `maxNorm`: by maxNorm / (norm + 1e-6) where that
 * is below 1, as torch does. The reference for the sharded clip; sums in float64.
 * @param maxNorm - Infinity measures and leaves the gradients alone
 * @returns the norm before scaling
 * @see Pascanu et al. 2013, https://arxiv.org/abs/1211.5063
 */
export function clipGradNorm(gradients: readonly Tensor[], maxNorm: number): number {
  return noGrad(() =>
    scope(() => {
      const squares = gradients.map((gradient) => gradient.to("float64").square().sum().item());
      const norm = Math.sqrt(squares.reduce((a, b) => a + b, 0));
      const factor = maxNorm / (norm + 1e-6);
      if (factor < 1) for (const gradient of gradients) gradient.mul_(factor);
      return norm;
    }),
  );
}
