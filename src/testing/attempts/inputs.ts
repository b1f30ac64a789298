import { KIT_DOMAIN } from "../instance/domains";
import { type Endpoint, fieldsOf, formsOf, requiredOf, type Schema } from "../instance/endpoints";
import type { GivenInput, Values } from "../options";
import { PASSWORD } from "../sides/people";
import { directoryInput } from "./directory-input";

export interface Input {
  path: string;
  query: Record<string, string>;
  body: Values | undefined;
  headers: Record<string, string>;
  /** Required values that were made up, although only the application could know them: an id, a code. */
  invented: string[];
}

/** The given values, and made-up ones for other required fields. `bare`: required fields only. */
export function inputFor(endpoint: Endpoint, given: Values, own?: GivenInput, bare = false): Input {
  const values: Values = { ...given, ...specific(endpoint, given), ...own?.params };
  const invented = new Set<string>();
  const invent = (name: string, schema: Schema) => {
    const value = madeUp(name, schema);
    const isText = /text|title|name|message|content|note|comment|description|label|subject/i.test(
      name,
    );
    const isUnknown = value === UNKNOWN || /(^id|Id|ID)s?$/.test(name);
    if (isUnknown && !isText && !(name in PLAUSIBLE)) invented.add(name);
    // A field for free text, which an application stores and shows again.
    return isText && value === UNKNOWN ? (values.freeText ?? value) : value;
  };
  const fill = (schema: Schema | undefined, over: Values = {}): Values => {
    const required = new Set(requiredOf(schema));
    const entries = Object.entries(fieldsOf(schema)).flatMap(([name, field]) => {
      if (name in over) return [];
      const wanted = required.has(name) || (!bare && values[name] !== undefined);
      return wanted ? [[name, values[name] ?? invent(name, field)]] : [];
    });
    return { ...Object.fromEntries(entries), ...over };
  };
  const path = endpoint.path.replaceAll(/:(\w+)/g, (_, name: string) =>
    encodeURIComponent(String(values[name] ?? invent(name, {}))),
  );
  const isRead = endpoint.method === "GET";
  const over = { ...freeForm(endpoint, values), ...own?.body };
  const body = isRead ? undefined : fill(endpoint.body, over);
  // What the body says need not be said twice.
  const query = Object.entries(fill(endpoint.query, own?.query))
    .filter(([name]) => !(body && name in body))
    .map(([name, value]) => [name, String(value)]);
  const headers = own?.headers ?? {};
  return { path, query: Object.fromEntries(query), body, headers, invented: [...invented] };
}

/** The fields whose name says too little. */
function specific({ path, method }: Endpoint, things: Values): Values {
  const { userId, tenantId, id } = things;
  if (path.startsWith("/passkey/")) return { id: things.passkeyId };
  if (path.startsWith("/api-key/")) return { id: things.keyId, ...SPECIFIC[path] };
  if (path === "/sso/register") return things.newSsoProvider as Values;
  if (path.startsWith("/sso/saml2/")) return { providerId: things.samlProviderId };
  if (/^\/sso\/.*domain/.test(path)) return { providerId: things.unverifiedProviderId };
  if (path.startsWith("/sso/") || path === "/sign-in/sso") {
    return { providerId: things.ssoProviderId, domain: things.ssoDomain };
  }
  if (path.startsWith("/scim/")) return directoryInput(method, path, things);
  if (path === "/organization/get-invitation") return { id: things.invitationId };
  if (path === "/organization/cancel-invitation") return { invitationId: things.ownInvitationId };
  if (path.startsWith("/tenant/invitation/")) {
    return { id: things.tenantInvitationId, ...fresh(path, things) };
  }
  if (path === "/tenant/domain/add") return { domain: `new.${KIT_DOMAIN}` };
  if (/^\/tenant\/(domain\/|discover$)/.test(path)) return { domain: things.tenantDomain };
  if (path === "/tenant/get") return { id: tenantId ?? UNKNOWN };
  if (/^\/admin\/(get|list|revoke|set|update)/.test(path)) return { id: userId, ...SPECIFIC[path] };
  // Users cannot ban, remove or impersonate themselves.
  if (path.startsWith("/admin/")) return { userId: things.secondUserId, ...fresh(path, things) };
  return { ...(id === undefined ? {} : { id }), ...fresh(path, things), ...SPECIFIC[path] };
}

const fresh = (path: string, { freshEmail, freshName }: Values): Values =>
  /\/sign-up\/|\/create-user$|\/invite-member$|\/invitation\/create$/.test(path)
    ? { email: freshEmail, username: freshName, ...ROLE_OF_NEW[path] }
    : {};

const ROLE_OF_NEW: Record<string, Values> = {
  "/admin/create-user": { role: "user" },
  "/organization/invite-member": { role: "member" },
};

const CHANGED = "changed by the kit";

const SPECIFIC: Record<string, Values> = {
  "/admin/update-user": { data: { name: CHANGED } },
  "/admin/set-role": { role: "admin" },
  "/api-key/update": { name: CHANGED },
  "/tenant/update": { name: CHANGED },
  "/tenant/oauth-config/update": { scopes: [CHANGED] },
  "/organization/update-team": { data: { name: CHANGED } },
  "/organization/update": { data: { name: CHANGED } },
  "/organization/update-member-role": { role: "admin" },
};

/** Bodies that say more than their schema. */
function freeForm({ path, freeForm }: Endpoint, { newPerson }: Values): Values {
  if (/\/(sign-up\/email|invitation\/accept)$/.test(path)) return newPerson as Values;
  if (path === "/update-session") return { userAgent: CHANGED };
  if (path === "/update-user") return { name: CHANGED, image: "https://example.com/changed.png" };
  // There are two forms of it, and only the newer one works.
  if (path === "/admin/has-permission") return { permissions: PERMISSIONS, permission: undefined };
  if (path.endsWith("/has-permission")) {
    return { permissions: { organization: ["update"] }, permission: undefined };
  }
  return freeForm ? { name: CHANGED } : {};
}

const UNKNOWN = "unknown";
const PERMISSIONS = { user: ["list"] };

const PLAUSIBLE: Values = {
  password: PASSWORD,
  currentPassword: PASSWORD,
  newPassword: "another good password 4712",
  name: CHANGED,
  slug: "a-new-slug-of-the-kit",
  email: "not-yet-taken@example.com",
  newEmail: "changed-by-the-kit@example.com",
  role: "admin",
  provider: "google",
  providerId: "google",
  clientId: "changed-by-the-kit",
  clientSecret: "changed-by-the-kit",
  callbackURL: "/welcome",
  redirectTo: "/welcome",
  otp: "000000",
  code: "000000",
  message: "example.com wants you to sign in",
  permission: PERMISSIONS,
  permissions: PERMISSIONS,
  response: { id: UNKNOWN, response: {} },
  grant_type: "urn:ietf:params:oauth:grant-type:device_code",
};

function madeUp(name: string, schema: Schema): unknown {
  if (schema.const !== undefined) return schema.const;
  if (schema.enum) return schema.enum[0];
  if (name in PLAUSIBLE) return PLAUSIBLE[name];
  const [first] = formsOf(schema);
  if (first) return madeUp(name, first);
  const [type] = [schema.type].flat();
  if (type === "boolean") return true;
  if (type === "number" || type === "integer") return schema.minimum ?? 1;
  if (type === "array") return schema.items ? [madeUp("", schema.items as Schema)] : [];
  if (type === "object") {
    const fields = Object.entries((schema.properties ?? {}) as Record<string, Schema>);
    return Object.fromEntries(fields.map(([key, field]) => [key, madeUp(key, field)]));
  }
  if (schema.format === "email") return PLAUSIBLE.email;
  return schema.format === "uri" ? "https://example.com/" : UNKNOWN;
}
