import { figuresOf, fillIn, type TroupeEvent } from "../../job/events/index.ts";

/** A point of a curve over steps, which an event adds. */
export interface Point {
  /** Such as "loss", "speed", "time_ms"; "loss_SPLIT" and "metrics_SPLIT" for what a job or a dataset names. */
  readonly group: string;
  readonly name: string;
  /** The rank that it is a figure of, if it is one of a rank. */
  readonly rank: number | undefined;
  readonly value: number;
}

/** The points that an event adds to curves over steps. */
export function pointsOf(event: TroupeEvent): readonly Point[] {
  return figuresOf(event.kind).flatMap(({ curve, read, hasGaps }) => {
    if (curve === undefined) return [];
    const [group = "", name = ""] = curve.split("/");
    return read(event)
      .filter(({ value }) => !(hasGaps && Number.isNaN(value)))
      .map(({ value, labels }) => ({
        group: fillIn(group, labels),
        name: fillIn(name, labels),
        rank: labels.rank as number | undefined,
        value,
      }));
  });
}
