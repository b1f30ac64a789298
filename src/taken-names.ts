import type { AuthContext, BetterAuthPlugin } from "better-auth";
import type { ResolvedOptions } from "./options";
import { confinedModels, type Names, PLUGIN_MODELS, refuse } from "./schema";

/*
 * The names of fields and columns that the plugin needs, and that somebody else may have.
 */

/** Refuses to start while one is taken, or known by two names. The error says what to write. */
export function assertNamesAreFree(
  ctx: AuthContext,
  others: BetterAuthPlugin[],
  options: ResolvedOptions,
) {
  const clashes = [
    ...withoutOurs(confinedModels(options)).flatMap((model) => [
      ...fieldClashes(ctx, others, options, model),
      ...columnClashes(ctx, options, model),
    ]),
    ...renamedColumns(ctx, options),
  ];
  if (clashes.length > 0) refuseNames(clashes, namesIn(options));
}

/** In better-auth's own options, and in the schemas of other plugins. */
function fieldClashes(
  ctx: AuthContext,
  others: BetterAuthPlugin[],
  options: ResolvedOptions,
  model: string,
): Clash[] {
  const additional = ctx.options[model as "user"]?.additionalFields?.tenantId;
  const owners = [
    { field: additional, where: `${model}.additionalFields of better-auth's options` },
    ...others.map(({ id, schema }) => ({
      field: schema?.[model]?.fields.tenantId,
      where: `the schema of the plugin ${id}, model ${model}`,
    })),
  ];
  return owners.flatMap(({ field, where }) => {
    if (!field) return [];
    const column = field.fieldName || "tenantId";
    const isTaken = same(column, ourColumn(options, model));
    return [{ ...fieldClash(where, column), rename: isTaken ? freeName(ctx, model) : undefined }];
  });
}

/** Fields under another name whose column is ours. */
function columnClashes(ctx: AuthContext, options: ResolvedOptions, model: string): Clash[] {
  const ours = ourColumn(options, model);
  return Object.entries(ctx.tables[model]?.fields ?? {}).flatMap(([name, { fieldName }]) =>
    name !== "tenantId" && same(fieldName || name, ours)
      ? [
          {
            problem: `the column "${ours}" of ${model} belongs to the field "${name}"`,
            rename: freeName(ctx, model),
          },
        ]
      : [],
  );
}

/**
 * Our columns replace better-auth's of the same field, and with them the names that better-auth's
 * options give them. Migrations may run before anything has started, so ours have to be named too.
 */
function renamedColumns(ctx: AuthContext, options: ResolvedOptions): Clash[] {
  const { user, account } = ctx.options;
  const columns = [
    // With this option the e-mail column stays better-auth's.
    ...(options.keepEmailGloballyUnique
      ? []
      : [{ model: "user", field: "email", column: user?.fields?.email }]),
    { model: "account", field: "accountId", column: account?.fields?.accountId },
  ];
  return columns.flatMap(({ model, field, column }) => {
    const ours = namesIn(options)[model]?.fields?.[field] ?? field;
    if (!column || column === ours) return [];
    const problem = `${model}.fields.${field} of better-auth's options is "${column}", and the plugin has it as "${ours}"`;
    return [{ problem, rename: { model, field, column } }];
  });
}

const withoutOurs = (models: string[]) => models.filter((model) => !PLUGIN_MODELS.includes(model));

const namesIn = ({ schema }: ResolvedOptions) => ({ ...schema }) as Names;

const ourColumn = (options: ResolvedOptions, model: string): string =>
  namesIn(options)[model]?.fields?.tenantId ?? "tenantId";

/** Most databases do not tell upper case from lower case in the names of columns. */
const same = (a: string, b: string) => a.toLowerCase() === b.toLowerCase();

/** A name for our column that no field of the table has. */
function freeName(ctx: AuthContext, model: string) {
  const taken = Object.entries(ctx.tables[model]?.fields ?? {});
  let column = "authTenantId";
  while (taken.some(([name, { fieldName }]) => same(fieldName || name, column))) column += "_";
  return { model, field: "tenantId", column };
}

/** A name that both the application and the plugin use, or that they know by two names. */
interface Clash {
  /** What is wrong, and where. */
  problem: string;
  /** What to change in the application's own names, if anything. */
  remedy?: string;
  /** The name that our `schema` option has to give to a field, if any. */
  rename?: { model: string; field: string; column: string };
}

/** Somebody else's field that is called `tenantId`, like ours. One would replace the other. */
function fieldClash(where: string, column: string): Clash {
  return {
    problem: `${where}: there is a field "tenantId", as the plugin's own is called`,
    remedy: `    If it is not meant to be the plugin's own, rename it there and keep its column: appTenantId: { ..., fieldName: "${column}" }. If it is, leave it out.`,
  };
}

/** Refuses to start, and says what to write, with the names that `schema` has already. */
function refuseNames(clashes: Clash[], schema: Names): never {
  const names = { ...schema };
  for (const { rename } of clashes) {
    if (!rename) continue;
    const { model, field, column } = rename;
    names[model] = { ...names[model], fields: { ...names[model]?.fields, [field]: column } };
  }
  const isRenamed = clashes.some(({ rename }) => rename);
  refuse(
    "some names in the database are taken, or not the ones that better-auth's options say:",
    ...clashes.flatMap(({ problem, remedy }) => [`  ${problem}`, ...(remedy ? [remedy] : [])]),
    ...(isRenamed ? ["Set this option of tenantAuth():", `  schema: ${literal(names)},`] : []),
  );
}

/** A value as one would write it in TypeScript. */
function literal(value: unknown): string {
  if (typeof value !== "object" || !value) return JSON.stringify(value);
  const entries = Object.entries(value).map(
    ([key, item]) => `${/^\w+$/.test(key) ? key : JSON.stringify(key)}: ${literal(item)}`,
  );
  return `{ ${entries.join(", ")} }`;
}
