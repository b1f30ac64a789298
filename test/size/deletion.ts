import type { TestDatabase } from "../support/database";
import { gate } from "../support/gate";
import { PASSWORD } from "../support/instance";
import type { SizeInstance } from "./flows";
import { listen } from "./plans";
import { type Size, tenantId, userEmail } from "./population";

/** Stops the transaction that deletes a tenant right before its commit, with all that it locks. */
export function holdDeletion(database: TestDatabase) {
  const commit = gate();
  const deleting = new WeakSet<object>();
  listen(database, (connection, sql, run) => {
    if (/^delete from .tenant. /i.test(sql)) deleting.add(connection);
    if (!/^commit/i.test(sql) || !deleting.delete(connection)) return run();
    return commit.pass().then(() => {
      const answer = run();
      // The one driver answers with a promise, the other calls back.
      return answer instanceof Promise ? answer : undefined;
    });
  });
  return { reached: commit.reached, release: commit.open };
}

/** One of the other tenants' people signs in, signs up, or starts with a provider. */
export function otherTenantsRequest(app: SizeInstance, size: Size, index: number) {
  const n = 1 + ((index * 7919) % size.users);
  const named = { tenantId: tenantId(1 + (n % size.tenants)) };
  const person = { ...named, email: userEmail(n), password: PASSWORD };
  const newcomer = { ...person, name: "Newcomer", email: `newcomer-${index}@example.com` };
  const social = { ...named, provider: "gitlab", callbackURL: "/" };
  if (index % 3 === 0) return app.browser().post("/tenant/sign-up/email", newcomer);
  if (index % 3 === 1) return app.browser().post("/tenant/sign-in/social", social);
  return app.browser().post("/tenant/sign-in/email", person);
}
