import type { BetterAuthOptions } from "better-auth";
import type { Side } from "../sides/side";

/** Makes things or credentials that an installed plugin can make, the way that people get them. */
export interface Maker {
  name: string;
  /** The endpoints that it takes. */
  paths: string[];
  make(side: Side): Promise<void>;
  /** Whether the application has it switched on, where that is an option. */
  isOn?(options: BetterAuthOptions): boolean;
  /** What to give where it does not work. */
  give?: string;
}
