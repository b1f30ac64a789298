import type { Values } from "../options";

export const GROUPS = "/scim/v2/Groups";
export const GROUP = "urn:ietf:params:scim:schemas:core:2.0:Group";
const USER = "urn:ietf:params:scim:schemas:core:2.0:User";
const PATCH = "urn:ietf:params:scim:api:messages:2.0:PatchOp";

export const directoryPerson = (name: string) => ({
  schemas: [USER],
  userName: `${name}@example.com`,
  externalId: `external-${name}`,
  name: { givenName: name, familyName: "Example" },
  emails: [{ value: `${name}@example.com`, primary: true }],
});

/** The input of an endpoint for directories: about a user, or a group, of a side. */
export function directoryInput(method: string, path: string, things: Values): Values {
  const { scimUserId, scimGroupId, freshName } = things;
  const ids = { userId: scimUserId, groupId: scimGroupId, schemaId: USER, resourceTypeId: "User" };
  const members = [{ value: scimUserId }];
  if (method === "PATCH") {
    const rename = { op: "replace", path: "displayName", value: "changed by the kit" };
    return { ...ids, schemas: [PATCH], Operations: [rename] };
  }
  if (method === "GET") return ids;
  if (path.startsWith(GROUPS)) {
    return { ...ids, schemas: [GROUP], displayName: `group ${freshName}`, members };
  }
  return { ...ids, ...directoryPerson(`scim-${freshName}`) };
}
