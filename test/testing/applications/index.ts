import { caches } from "./caches";
import { hooks } from "./hooks";
import { lists } from "./lists";
import { ownTables } from "./own-tables";
import type { Application } from "./support";
import { tokens } from "./tokens";

/** Applications that the kit is judged by: some have a hole, the others have none. */
export const applications: Application[] = [...ownTables, ...caches, ...hooks, ...tokens, ...lists];

export type { Application, Built } from "./support";
