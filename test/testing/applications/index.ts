import { ownTables } from "./own-tables";
import type { Application } from "./support";

/** Applications that the kit is judged by: some have a hole, the others have none. */
export const applications: Application[] = [...ownTables];

export type { Application, Built } from "./support";
