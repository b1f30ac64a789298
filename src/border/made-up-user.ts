import type { BetterAuthOptions } from "better-auth";
import { parseUserInput } from "better-auth/db";
import { textOf } from "../framework";
import { currentEndpoint } from "../scope/endpoint";
import { notes } from "../scope/scope";

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

/**
 * An invitation is accepted where the user is made, after all hooks. So it decides about a user who is
 * made up as well, be it by us or by the application.
 */
export const withInvitation =
  (makeUp: MakeUp): MakeUp =>
  (given) => ({ ...makeUp(given), ...writtenByInvitation() });

/** What the invitation that came with a sign-up writes into the user. */
export function writtenByInvitation(): Record<string, unknown> {
  const { invited } = notes();
  if (!invited) return {};
  return textOf(currentEndpoint()?.body?.email).toLowerCase() === invited.email ? invited.data : {};
}
