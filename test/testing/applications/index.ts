import { caches } from "./caches";
import { hooks } from "./hooks";
import { ownTables } from "./own-tables";
import type { Application } from "./support";

/** Applications that the kit is judged by: some have a hole, the others have none. */
export const applications: Application[] = [...ownTables, ...caches, ...hooks];

export type { Application, Built } from "./support";
