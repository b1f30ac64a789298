import type { SocialProviderList } from "better-auth/social-providers";
import type { OAuthConfigCheck } from "better-auth-tenant";

type ProviderId = SocialProviderList[number];

/** The providers as they write themselves. A new one in better-auth is a type error here. */
const NAMES: Record<ProviderId, string> = {
  apple: "Apple",
  atlassian: "Atlassian",
  cloudflare: "Cloudflare",
  cognito: "Amazon Cognito",
  discord: "Discord",
  dropbox: "Dropbox",
  facebook: "Facebook",
  figma: "Figma",
  github: "GitHub",
  gitlab: "GitLab",
  google: "Google",
  huggingface: "Hugging Face",
  kakao: "Kakao",
  kick: "Kick",
  line: "LINE",
  linear: "Linear",
  linkedin: "LinkedIn",
  microsoft: "Microsoft",
  naver: "Naver",
  notion: "Notion",
  paybin: "Paybin",
  paypal: "PayPal",
  polar: "Polar",
  railway: "Railway",
  reddit: "Reddit",
  roblox: "Roblox",
  salesforce: "Salesforce",
  slack: "Slack",
  spotify: "Spotify",
  tiktok: "TikTok",
  twitch: "Twitch",
  twitter: "X (Twitter)",
  vercel: "Vercel",
  vk: "VK",
  wechat: "WeChat",
  zoom: "Zoom",
};

export const providerIds = Object.keys(NAMES).sort(byName);

export function providerName(id: string): string {
  return NAMES[id as ProviderId] ?? id;
}

/** For sorting provider ids in the order that people expect. */
export function byName(a: string, b: string): number {
  return providerName(a).localeCompare(providerName(b), "en");
}

/** The first problem that a check has found. */
export const checkedProblem = ({ findings }: OAuthConfigCheck) =>
  findings.find(({ ok }) => ok === false)?.message ?? "Unknown";

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
    { name: "userPoolId", label: "User pool ID", required: true },
  ],
  gitlab: [
    {
      name: "issuer",
      label: "URL of your own GitLab",
      placeholder: "https://gitlab.example.com",
      hint: "Leave empty for gitlab.com.",
    },
  ],
  microsoft: [
    {
      name: "tenantId",
      label: "Directory (tenant) ID",
      hint: "Leave empty to allow every directory.",
    },
  ],
};
