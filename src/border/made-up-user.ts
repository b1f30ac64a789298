import type { BetterAuthOptions } from "better-auth";
import { parseUserInput } from "better-auth/db";
import { currentEndpoint } from "../scope/endpoint";

type MakeUp = NonNullable<
  NonNullable<BetterAuthOptions["emailAndPassword"]>["customSyntheticUser"]
>;

/**
 * The user that better-auth makes up to hide that an e-mail is taken, where the application does
 * not say what it looks like. Left to itself, better-auth knows the defaults of all columns, but not
 * what the hooks of plugins write into a new user: somebody without a role would be taken.
 */
export const makeUpUser: MakeUp = ({ coreFields, additionalFields, id }) => {
  const { body, context } = currentEndpoint() ?? {};
  if (!context) return { ...coreFields, ...additionalFields, id };
  // With the fields of plugins, which better-auth leaves out of the additional ones.
  const { name, email, password, image, callbackURL, rememberMe, ...rest } = body;
  const given = parseUserInput(context.options, rest, "create");
  return { ...writtenByHooks(context.options), ...coreFields, ...given, id };
};

/** By the official plugins. better-auth leaves out what has no column. */
function writtenByHooks({ plugins }: BetterAuthOptions): Record<string, unknown> {
  const admin = plugins?.find((plugin) => plugin.id === "admin");
  return {
    lastLoginMethod: "email",
    ...(admin && { role: admin.options?.defaultRole ?? "user" }),
  };
}
