/** One page that shows a run while it goes on, or the record of one. */
export { Dashboard, type DashboardOptions, type DashboardSources } from "./dashboard.ts";
export { eventFileName, type FileReader, findEventFile, followFile } from "./follow-file.ts";
export type { ActorStatus } from "./frame.ts";
