import { figuresOf, fillIn, type TroupeEvent } from "../../job/events/index.ts";

/** A point that an event adds to a curve over steps. */
export interface Point {
  /** The curve's group, such as "loss", "speed", "time_ms"; "loss_SPLIT" and "metrics_SPLIT" for names of a job or a dataset. */
  readonly group: string;
  readonly name: string;
  /** The rank, for a curve of one rank. */
  readonly rank: number | undefined;
  readonly value: number;
}

/** The name of a point's curve where all are in one list: `loss/train`, `time_ms/rank_1/step`. */
export function curveOf({ group, name, rank }: Point): string {
  return rank === undefined ? `${group}/${name}` : `${group}/rank_${rank}/${name}`;
}

/** The points that an event adds to curves over steps. */
export function pointsOf(event: TroupeEvent): readonly Point[] {
  const points: Point[] = [];
  for (const { curve, read, hasGaps } of figuresOf(event.kind)) {
    if (curve === undefined) continue;
    const { group, name } = curve;
    for (const { value, labels } of read(event)) {
      if (hasGaps && Number.isNaN(value)) continue;
      const rank = labels.rank as number | undefined;
      points.push({ group: fillIn(group, labels), name: fillIn(name, labels), rank, value });
    }
  }
  return points;
}
