import type { AuthContext } from "better-auth";
import { describe, expect, it } from "vitest";
import type { TenantAuthOptions } from "../../src/index";
import { tenantInvitations } from "../../src/invitations/index";
import { checkIsolation, type Leak } from "../../src/testing/index";
import { createInstance, type InstanceOptions } from "../support/instance";
import { unconfine } from "./holes";

/** A tenant's own administrators invite, so there is something to reach for from the other side. */
const create = (tenant: TenantAuthOptions = {}, auth: InstanceOptions["auth"] = {}) =>
  createInstance({
    auth,
    tenant: { tenantRoles: { admin: ["invitation:*"] }, ...tenant },
    plugins: [
      tenantInvitations({
        sendInvitationEmail: () => {
          throw new Error("the kit was to stand in for this sender");
        },
      }),
    ],
  });

const extent = { paths: ["/tenant/", "/sign-up/"], everyNaming: true };

it("invitations: nothing crosses the border, and nothing is left untried", {
  timeout: 600_000,
}, async () => {
  const { auth, rows } = await create();
  const report = await checkIsolation(auth, { extent });
  expect(report.leaks).toEqual([]);
  expect(report.failures).toEqual([]);
  expect(report.untried).toEqual([]);
  expect(report.counts.endpoints).toBeGreaterThan(20);
  expect(await rows("tenantInvitation")).toBe(0);
});

it("also where nobody signs up with a password", { timeout: 600_000 }, async () => {
  const { auth } = await create({}, { emailAndPassword: { enabled: false } });
  const { leaks, untried } = await checkIsolation(auth, {
    extent: { paths: ["/tenant/invitation/"] },
  });
  expect([leaks, untried]).toEqual([[], []]);
});

describe("holes that were planted", () => {
  const only = { extent: { paths: ["/tenant/invitation/"], everyNaming: true } };
  const foundAt = (leaks: Leak[], path: string) =>
    leaks.filter(({ endpoint }) => endpoint.endsWith(path)).map(({ found }) => found);

  it("finds an application that lets everybody with a session manage", async () => {
    const { auth } = await create({ canManageTenants: (_, { session }) => session !== null });
    const { leaks } = await checkIsolation(auth, only);
    expect(foundAt(leaks, "/revoke").join()).toMatch(/tenantInvitation of \w+: 1 changed/);
    expect(foundAt(leaks, "/list").join()).toMatch(/tells of/);
  });

  it("finds that invitations are not confined", async () => {
    const { auth, context } = await create();
    unconfine(context as unknown as AuthContext, "tenantInvitation");
    const { leaks } = await checkIsolation(auth, only);
    expect(foundAt(leaks, "/list").join()).toMatch(/tells of/);
  });
});
