import { directoryPerson, GROUP, GROUPS } from "../attempts/directory-input";
import { ok } from "../sides/browser";
import { inAnHour, maker } from "./maker";

const USERS = "/scim/v2/Users";
const SCOPES = ["users.read", "users.write", "groups.read", "groups.write"];

/** A directory with a user and a group in it. The same user is in the directories of all sides. */
export const directory = maker(
  "directory",
  [USERS, GROUPS],
  async (side) => {
    const { workshop, things } = side;
    const { api, tenantOptions } = workshop.subject;
    const create = api.createSCIMManagedConnection;
    if (!create) throw new Error("scim() has no managed connections");
    const word = `${workshop.mark}-${side.name}`;
    const connection = {
      creationRequestId: `directory-${word}`,
      provisioningDomainId: `directory-${word}`,
      actorId: "isolation kit",
      scopes: SCOPES.map((scope) => `scim.${scope}`),
      expiresAt: inAnHour(),
    };
    const created = await side.inside(() => create({ body: connection, ...side.serverCall() }));
    const { token } = created as { token: string };
    side.secrets.push(token);
    const headers = { authorization: `Bearer ${token}` };
    const add = async (path: string, body: object) =>
      (await ok<{ id: string }>(side.fresh().post(path, body, headers))).id;
    const name = `directory-person-${tenantOptions.keepEmailGloballyUnique ? word : workshop.mark}`;
    things.scimUserId = await add(USERS, directoryPerson(name));
    const members = [{ value: things.scimUserId }];
    const displayName = `group ${word}`;
    things.scimGroupId = await add(GROUPS, { schemas: [GROUP], displayName, members });
    // It says where it belongs, at all endpoints for directories, and has no things of its own.
    const reach = { sealed: true, sealedFor: "/scim/v2", namesNothing: true };
    return { name: "token of a directory", values: {}, headers, home: USERS, ...reach };
  },
  { give: "`managedConnections` of scim(): tokens that are in its options are the platform's" },
);
