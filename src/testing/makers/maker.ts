import type { BetterAuthOptions } from "better-auth";
import type { OneTime, Side } from "../sides/side";

/** A one-time credential, by default with the name of its maker and valid at its last path. */
type Made = Partial<OneTime> & Pick<OneTime, "values">;

/** Makes things or credentials that an installed plugin can make, the way that users get them. */
export interface Maker {
  name: string;
  /** The endpoints that it takes. */
  paths: string[];
  make(side: Side): Promise<Made | Made[] | undefined> | Promise<void>;
  /** Whether the application has it switched on, where that is an option. */
  isOn?: ((options: BetterAuthOptions) => boolean) | undefined;
  /** What to pass if it does not work. */
  give?: string | undefined;
}

export const maker = (
  name: string,
  paths: string[],
  make: Maker["make"],
  rest: Pick<Maker, "isOn" | "give"> = {},
): Maker => ({ name, paths, make, ...rest });

export const inAnHour = () => new Date(Date.now() + 3_600_000);
