import { directoryPerson, GROUP, GROUPS } from "../attempts/directory-input";
import { read } from "../sides/browser";
import { namedAtHome } from "../sides/places";
import type { Side } from "../sides/side";
import type { Maker } from "./maker";

const USERS = "/scim/v2/Users";
const SCOPES = ["users.read", "users.write", "groups.read", "groups.write"];
const HOUR_MS = 3_600_000;

/**
 * A directory of the place, with somebody and a group in it. The same person is in the directories
 * of all sides.
 */
export const directory: Maker = {
  name: "directory",
  paths: [USERS, GROUPS],
  give: "`managedConnections` of scim(): tokens that are in its options are the platform's",
  async make(side) {
    const { workshop, things, oneTimes, secrets } = side;
    const create = workshop.subject.api.createSCIMManagedConnection;
    if (!create) throw new Error("scim() has no managed connections");
    const word = `${workshop.mark}-${side.name}`;
    const { token } = (await side.inside(() =>
      create({
        body: {
          creationRequestId: `directory-${word}`,
          provisioningDomainId: `directory-${word}`,
          actorId: "isolation kit",
          scopes: SCOPES.map((scope) => `scim.${scope}`),
          expiresAt: new Date(Date.now() + HOUR_MS),
        },
        ...side.serverCall(),
      }),
    )) as { token: string };
    secrets.push(token);
    const headers = { authorization: `Bearer ${token}` };
    const isUnique = workshop.subject.tenantOptions.keepEmailGloballyUnique;
    const name = `directory-person-${isUnique ? word : workshop.mark}`;
    things.scimUserId = await post(side, USERS, headers, directoryPerson(name));
    things.scimGroupId = await post(side, GROUPS, headers, {
      schemas: [GROUP],
      displayName: `group ${word}`,
      members: [{ value: things.scimUserId }],
    });
    oneTimes.push({
      name: "token of a directory",
      values: {},
      headers,
      home: USERS,
      // It says where it belongs, at all endpoints for directories, and has no things of its own.
      sealed: true,
      sealedFor: "/scim/v2",
      namesNothing: true,
    });
  },
};

async function post(side: Side, path: string, headers: Record<string, string>, body: object) {
  const { place, workshop } = side;
  const { handler, basePath, tenantOptions } = workshop.subject;
  const named = namedAtHome(place, tenantOptions);
  const answer = await read(
    await handler(
      new Request(place.origin + basePath + path, {
        method: "POST",
        headers: { "content-type": "application/json", ...place.headers, ...named, ...headers },
        body: JSON.stringify(body),
      }),
    ),
  );
  const { id } = (answer.data ?? {}) as { id?: string };
  if (answer.status !== 201 || !id) {
    throw new Error(`${answer.status} ${answer.text.slice(0, 200)}`);
  }
  return id;
}
