import { join } from "node:path";
import type { DashboardOptions } from "../dashboard/index.ts";
import type { NamesOf } from "../errors.ts";
import { refuseUnknown } from "./option-error.ts";
import type { RuntimeOptions } from "./options.ts";
import { whole } from "./whole.ts";

/** Beside the checkpoints of a run: a page that is open then finds the run that goes on from them. */
const tokenFileName = "dashboard.token";

const lastPort = 65_535;
const names: NamesOf<DashboardOptions> = { host: true, port: true, tokenFile: true };

/** @throws {TroupeError} `OPTION` */
export function settleDashboard({
  dashboard = false,
  checkpoint,
}: RuntimeOptions): DashboardOptions | undefined {
  if (dashboard === false) return undefined;
  const given = dashboard === true ? {} : dashboard;
  refuseUnknown("dashboard", given, names);
  if (given.port !== undefined) whole("dashboard.port", given.port, 0, lastPort);
  const folder = checkpoint?.dir;
  // In a store elsewhere a token would be others' to read.
  const isHere = folder !== undefined && !folder.includes("://");
  return { ...(isHere ? { tokenFile: join(folder, tokenFileName) } : {}), ...given };
}
