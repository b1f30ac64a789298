export interface ProviderField {
  name: string;
  label: string;
  placeholder?: string;
  hint?: string;
  required?: boolean;
}

/** What some providers need beyond a client id and a secret: the plugin's `options`. */
export const providerFields: Record<string, ProviderField[]> = {
  cognito: [
    { name: "domain", label: "Domain", required: true },
    { name: "region", label: "Region", placeholder: "eu-west-1", required: true },
    { name: "userPoolId", label: "User pool id", required: true },
  ],
  gitlab: [
    {
      name: "issuer",
      label: "Address of your own GitLab",
      placeholder: "https://gitlab.example.com",
      hint: "Leave it empty for gitlab.com.",
    },
  ],
  microsoft: [
    { name: "tenantId", label: "Directory (tenant) id", hint: "Leave it empty for everybody." },
  ],
};
