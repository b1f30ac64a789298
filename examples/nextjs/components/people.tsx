import { formatTime, shownName } from "@/lib/format";
import { roleName } from "@/lib/invitations";
import { ResetSecondFactor } from "./second-factor";

interface Person {
  id: string;
  name: string;
  email: string;
  emailVerified: boolean;
  role?: string | null;
  twoFactorEnabled?: boolean | null;
  createdAt: Date;
}

export function People({
  tenant,
  users,
  total,
}: {
  tenant: { id: string; name: string };
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
              {users.map(
                ({ id, name, email, emailVerified, role, twoFactorEnabled, createdAt }) => (
                  <tr key={id}>
                    <th scope="row">
                      <span className="three-lines">{shownName(name, "No name")}</span>
                      {role === "admin" && <span className="badge tint">{roleName(role)}</span>}
                    </th>
                    <td>
                      <span className="row">
                        <span className="grow">{email}</span>
                        {emailVerified && <span className="badge good">Confirmed</span>}
                      </span>
                      {twoFactorEnabled && <ResetSecondFactor tenantId={tenant.id} userId={id} />}
                    </td>
                    <td className="small muted wide-only time">{formatTime(createdAt)}</td>
                  </tr>
                ),
              )}
            </tbody>
          </table>
        </div>
      )}
      {total > users.length && <p className="muted">The first 50 of {total}.</p>}
    </section>
  );
}
