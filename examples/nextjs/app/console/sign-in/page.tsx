import { Entrance } from "@/components/entrance";
import { OperatorSignInForm } from "@/components/operator-sign-in";

export const metadata = { title: "Sign in" };

export default function OperatorSignInPage() {
  return (
    <Entrance
      brand="Console"
      motto="All tenants in one place."
      title="Sign in to the console"
      intro="For operators of the platform. Users of a tenant sign in on their tenant’s own page."
    >
      <OperatorSignInForm />
    </Entrance>
  );
}
