export { cleanUp } from "./clean-up";
export type { DeploymentOptions, Query } from "./data/query";
export { checkDeployment } from "./deployment/deployment";
export type { DeploymentReport, Finding } from "./deployment/findings";
export type { Accepted, Leak, NotApplicable, Repeatable, Untried } from "./findings";
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
