import { OAuthConfigForm } from "./oauth-config-form";
import { type Config, OAuthConfig } from "./oauth-configs";

/** A tenant's own credentials at social providers. */
export function SocialSignIn({ tenantId, configs }: { tenantId: string; configs: Config[] }) {
  return (
    <section className="card" aria-labelledby="providers">
      <h2 id="providers">Social sign-in</h2>
      {configs.length === 0 && <p className="nothing">No provider is set up yet.</p>}
      <ul className="list">
        {configs.map((config) => (
          <li key={config.providerId}>
            <OAuthConfig tenantId={tenantId} config={config} />
          </li>
        ))}
      </ul>
      <details>
        <summary>Set up a provider</summary>
        <OAuthConfigForm tenantId={tenantId} />
      </details>
    </section>
  );
}
