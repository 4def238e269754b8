import { numelOf } from "../tensor/index.ts";
import type { AdafactorSpec } from "./adafactor.ts";
import type { FlatPiece, StateLayout, Stretch } from "./update-rule.ts";

/** A parameter as a stack of matrices; of more than two dims the leading ones are the stack. */
export interface Matrices {
  readonly count: number;
  readonly rows: number;
  readonly columns: number;
}

/** @returns the matrices of a parameter of this shape; undefined for a vector or a scalar, which is not factored */
export function matricesOf(shape: readonly number[]): Matrices | undefined {
  const [rows, columns] = shape.slice(-2);
  if (rows === undefined || columns === undefined) return undefined;
  return { count: numelOf(shape.slice(0, -2)), rows, columns };
}

/** The offsets of a piece's state in each kind's tensor. */
export interface StatePlace<Piece extends FlatPiece> {
  readonly piece: Piece;
  readonly rowBegin: number;
  readonly columnBegin: number;
  readonly vectorBegin: number;
}

/** @returns the offsets of each piece's state, in the order of the pieces */
export function placesIn<Piece extends FlatPiece>({ pieces }: Stretch<Piece>): StatePlace<Piece>[] {
  let [rowBegin, columnBegin, vectorBegin] = [0, 0, 0];
  return pieces.map((piece) => {
    const place = { piece, rowBegin, columnBegin, vectorBegin };
    const matrices = matricesOf(piece.parameter.shape);
    if (matrices === undefined) vectorBegin += piece.numel;
    else {
      rowBegin += matrices.count * matrices.rows;
      columnBegin += matrices.count * matrices.columns;
    }
    return place;
  });
}

/**
 * @returns Adafactor's state of a stretch: means over rows and columns of matrices, squares of vectors, a first moment if asked
 * for
 */
export function stateOf<Piece extends FlatPiece>(
  spec: AdafactorSpec,
  stretch: Stretch<Piece>,
): StateLayout<Piece>[] {
  const rows: Piece[] = [];
  const columns: Piece[] = [];
  const vectors: Piece[] = [];
  for (const { piece, rowBegin, columnBegin, vectorBegin } of placesIn(stretch)) {
    const { shape } = piece.parameter;
    if (shape.length < 2) {
      vectors.push({ ...piece, rangeBegin: vectorBegin });
    } else {
      rows.push(completeState(piece, shape.slice(0, -1), rowBegin));
      columns.push(completeState(piece, [...shape.slice(0, -2), ...shape.slice(-1)], columnBegin));
    }
  }
  const layouts = [
    layoutOf("exp_avg_sq_row", rows),
    layoutOf("exp_avg_sq_col", columns),
    layoutOf("exp_avg_sq", vectors),
  ].filter(({ numel }) => numel > 0);
  if (spec.beta1 === undefined) return layouts;
  return [...layouts, { kind: "exp_avg", numel: stretch.numel, pieces: stretch.pieces }];
}

/** All means of a parameter, even if only a slice of it is owned. */
function completeState<Piece extends FlatPiece>(
  piece: Piece,
  shape: readonly number[],
  rangeBegin: number,
): Piece {
  const numel = numelOf(shape);
  return { ...piece, parameter: { ...piece.parameter, shape, numel }, parameterBegin: 0, rangeBegin, numel };
}

function layoutOf<Piece extends FlatPiece>(kind: string, pieces: readonly Piece[]): StateLayout<Piece> {
  return { kind, numel: pieces.reduce((sum, piece) => sum + piece.numel, 0), pieces };
}
