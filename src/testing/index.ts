export type { DeploymentOptions, Query } from "./data/query";
export { checkDeployment } from "./deployment/deployment";
export type { DeploymentReport, Finding } from "./deployment/findings";
export type { Leak, Repeatable, Untried } from "./findings";
export type { AuthInstance } from "./instance/subject";
export { checkIsolation } from "./isolation";
export type {
  About,
  Address,
  Caller,
  Extent,
  GivenInput,
  IsolationOptions,
  Mail,
  Outbox,
  ReadTables,
  Route,
} from "./options";
export type { IsolationReport } from "./report";
