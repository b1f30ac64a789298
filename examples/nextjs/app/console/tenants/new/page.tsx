import { ConsoleFrame } from "@/components/console-frame";
import { TenantForm } from "@/components/tenant-form";
import { auth } from "@/lib/auth";
import { asOperator } from "@/lib/management";

export const metadata = { title: "New tenant" };

export default async function NewTenantPage() {
  await asOperator((headers) => auth.api.listTenants({ query: { limit: 1 }, headers }));
  return (
    <ConsoleFrame trail={[["Tenants", "/console"]]}>
      <h1>New tenant</h1>
      <section className="card" aria-label="New tenant">
        <TenantForm />
      </section>
    </ConsoleFrame>
  );
}
