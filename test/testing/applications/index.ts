import { caches } from "./caches";
import { hooks } from "./hooks";
import { inputs } from "./inputs";
import { lists } from "./lists";
import { ownTables } from "./own-tables";
import { requests } from "./requests";
import { routes } from "./routes";
import { sound } from "./sound";
import type { Application } from "./support";
import { tokens } from "./tokens";

/** Applications that the kit is judged by: some have a hole, the others have none. */
export const applications: Application[] = [
  ...ownTables,
  ...caches,
  ...hooks,
  ...tokens,
  ...lists,
  ...requests,
  ...inputs,
  ...routes,
  ...sound,
];
