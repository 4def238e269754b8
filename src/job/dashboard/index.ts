/** A web page that shows a running or a recorded run. */
export { Dashboard, type DashboardOptions, type DashboardSources } from "./dashboard.ts";
export { eventFileName, type FileReader, findEventFile, followFile } from "./follow-file.ts";
export type { ActorStatus } from "./frame.ts";
