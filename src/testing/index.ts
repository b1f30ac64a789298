export type { Extent } from "./attempts";
export {
  checkDeployment,
  type DeploymentOptions,
  type DeploymentReport,
  type Finding,
  type Query,
} from "./deployment";
export type { GivenInput } from "./inputs";
export { type About, checkIsolation, type IsolationOptions } from "./isolation";
export type { Leak } from "./judge";
export type { Mail, Outbox } from "./outbox";
export type { Address } from "./places";
export type { IsolationReport, Untried } from "./report";
export type { Repeatable } from "./requests";
export type { Caller, Route } from "./routes";
export type { AuthInstance } from "./subject";
export type { ReadTables } from "./watch";
