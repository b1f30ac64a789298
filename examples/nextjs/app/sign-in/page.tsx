import { EmailFirst } from "@/components/email-first";
import { Entrance } from "@/components/entrance";

export const metadata = { title: "Sign in" };

/** For people who do not know the address of their tenant. */
export default function SignInPage() {
  return (
    <Entrance
      brand="Tenants"
      motto="One application, many tenants."
      title="Sign in"
      intro="Enter your work email, and we will find where you sign in."
    >
      <EmailFirst />
    </Entrance>
  );
}
