import { SignInProblem } from "@/components/sign-in-problem";

export const metadata = { title: "Sign-in problem" };

export default async function SignInProblemPage({ searchParams }: PageProps<"/sign-in-problem">) {
  const { error } = await searchParams;
  return (
    <SignInProblem brand="Tenants" error={error} back={{ href: "/", label: "Choose a tenant" }} />
  );
}
