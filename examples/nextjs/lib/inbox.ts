import type { BetterAuthPlugin } from "better-auth";

export interface Mail {
  id: string;
  to: string;
  subject: string;
  text: string;
  link: string;
  createdAt: Date;
}

/**
 * DO NOT COPY: its page shows everyone the links and codes of all users.
 *
 * A table for mails that nobody sends. It is one of the plugin's `scopedModels`, so a mail belongs
 * to the tenant that it was written in, and goes when that tenant goes.
 */
export const inbox = () =>
  ({
    id: "inbox",
    schema: {
      mail: {
        fields: {
          to: { type: "string", required: true },
          subject: { type: "string", required: true },
          text: { type: "string", required: true },
          link: { type: "string", required: true },
          createdAt: { type: "date", required: true },
        },
      },
    },
  }) satisfies BetterAuthPlugin;
