import { SignInProblem } from "@/components/sign-in-problem";
import { basePath, tenantOfPage } from "@/lib/tenants";

export const metadata = { title: "Sign-in problem" };

export default async function SignInProblemPage({
  params,
  searchParams,
}: PageProps<"/t/[slug]/sign-in-problem">) {
  const tenant = await tenantOfPage((await params).slug);
  const href = (await basePath(tenant)) || "/";
  const { error } = await searchParams;
  return <SignInProblem brand={tenant.name} error={error} back={{ href, label: "Sign in" }} />;
}
