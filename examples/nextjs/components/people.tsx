import { shownName } from "@/lib/format";
import { roleName } from "@/lib/invitations";
import { PersonActions } from "./person-actions";
import { Time } from "./time";

interface Person {
  id: string;
  name: string;
  email: string;
  emailVerified: boolean;
  role?: string | null;
  banned?: boolean | null;
  twoFactorEnabled?: boolean | null;
  createdAt: Date;
}

export function People({
  tenant,
  self,
  users,
  total,
}: {
  tenant: { id: string; name: string };
  /** The administrator who looks at them, if they are one of them. */
  self?: string;
  users: Person[];
  total: number;
}) {
  return (
    <section className="card" aria-labelledby="people">
      <h2 id="people">People at {tenant.name}</h2>
      {users.length === 0 && <p className="nothing">Nobody has signed up yet.</p>}
      {users.length > 0 && (
        <div className="table">
          <table>
            <thead>
              <tr>
                <th scope="col">Name</th>
                <th scope="col">Email</th>
                <th scope="col" className="wide-only">
                  Created
                </th>
              </tr>
            </thead>
            <tbody>
              {users.map(({ id, name, email, emailVerified, role, createdAt, ...user }) => (
                <tr key={id}>
                  <th scope="row">
                    <span className="three-lines">{shownName(name, "No name")}</span>
                    {role === "admin" && <span className="badge tint">{roleName(role)}</span>}
                    {user.banned && <span className="badge bad">Banned</span>}
                  </th>
                  <td>
                    <span className="row">
                      <span className="grow">{email}</span>
                      {emailVerified && <span className="badge good">Confirmed</span>}
                    </span>
                    <PersonActions
                      tenantId={tenant.id}
                      userId={id}
                      name={shownName(name, email)}
                      isAdministrator={role === "admin"}
                      isBanned={Boolean(user.banned)}
                      hasSecondFactor={Boolean(user.twoFactorEnabled)}
                      isSelf={id === self}
                    />
                  </td>
                  <td className="small muted wide-only time">
                    <Time date={createdAt} />
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
      {total > users.length && <p className="muted">The first 50 of {total}.</p>}
    </section>
  );
}
