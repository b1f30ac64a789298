import { isAPIError } from "better-auth/api";
import type { Tenant } from "better-auth-tenant";
import Link from "next/link";
import { AcceptForm } from "@/components/accept-invitation";
import { Entrance } from "@/components/entrance";
import { SocialButtons } from "@/components/sign-in";
import { Time } from "@/components/time";
import { auth } from "@/lib/auth";
import { explainRefusal } from "@/lib/errors";
import { passwordLength } from "@/lib/policy";
import { byName } from "@/lib/providers";
import { activeTenantOfPage, basePath, headersFor, sessionAt } from "@/lib/tenants";

export const metadata = { title: "Invitation" };

/** Where the link in an invitation leads to. */
export default async function AcceptInvitationPage({
  params,
  searchParams,
}: PageProps<"/t/[slug]/accept-invitation">) {
  const tenant = await activeTenantOfPage((await params).slug);
  const { token: given, error } = await searchParams;
  const token = String(given ?? "");
  const { invitation, problem } = await findInvitation(tenant, token);
  if (problem) return <UselessLink tenant={tenant} problem={problem} />;
  const { email, role, expiresAt, emailAndPassword, providers } = invitation;
  const signedIn = await sessionAt(tenant.id);
  const place = { tenantId: tenant.id, base: await basePath(tenant) };
  return (
    <Entrance
      brand={tenant.name}
      motto={`Join ${tenant.name}.`}
      title={`Join ${tenant.name}`}
      intro={
        <>
          You are invited as <strong>{email}</strong>.{" "}
          {role === "admin" && "You will be an administrator. "}
          This link works until <Time date={expiresAt} />.
        </>
      }
    >
      {error && (
        <p className="note bad" role="alert">
          {explainRefusal(String(error))}
        </p>
      )}
      {signedIn && (
        <p className="note">
          You are signed in as {signedIn.user.email}. Joining replaces that session.
        </p>
      )}
      {emailAndPassword.signUp && (
        <AcceptForm {...place} token={token} minLength={passwordLength(tenant)} />
      )}
      {emailAndPassword.signUp && providers.length > 0 && <p className="divider">or</p>}
      {providers.length > 0 && (
        <SocialButtons
          {...place}
          providers={providers.map(({ id }) => id).sort(byName)}
          invitation={token}
        />
      )}
    </Entrance>
  );
}

async function findInvitation(tenant: Tenant, token: string) {
  try {
    const headers = await headersFor(tenant.id);
    return { invitation: await auth.api.getTenantInvitation({ query: { token }, headers }) };
  } catch (error) {
    if (!isAPIError(error) || error.statusCode >= 500) throw error;
    return { problem: PROBLEMS[String(error.body?.code)] ?? WITHDRAWN };
  }
}

interface Problem {
  title: string;
  advice: string;
}

const WITHDRAWN: Problem = {
  title: "This invitation is not valid",
  advice:
    "It was withdrawn, or a newer email has replaced it. Please open the newest one, or ask for another invitation.",
};

const PROBLEMS: Record<string, Problem> = {
  INVITATION_EXPIRED: {
    title: "This invitation has expired",
    advice: "Please ask the person who invited you to send it again.",
  },
  INVITATION_ALREADY_ACCEPTED: {
    title: "This invitation has already been used",
    advice: "If it was you, you have an account: just sign in.",
  },
};

async function UselessLink({ tenant, problem }: { tenant: Tenant; problem: Problem }) {
  const base = await basePath(tenant);
  const signedIn = await sessionAt(tenant.id);
  return (
    <Entrance
      brand={tenant.name}
      motto={`Welcome to ${tenant.name}.`}
      title={problem.title}
      intro={problem.advice}
    >
      <div>
        <Link className="button" href={signedIn ? `${base}/dashboard` : base || "/"}>
          {signedIn ? "Go to the dashboard" : "Sign in"}
        </Link>
      </div>
    </Entrance>
  );
}
