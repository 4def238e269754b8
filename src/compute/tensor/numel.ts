/** @returns how many elements a tensor of this shape has; 1 for a scalar */
export function numelOf(shape: readonly number[]): number {
  return shape.reduce((product, size) => product * size, 1);
}
