/** Returns the number of elements of a shape; 1 for a scalar. */
export function numelOf(shape: readonly number[]): number {
  return shape.reduce((product, size) => product * size, 1);
}
