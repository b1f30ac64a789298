/*
 * What the newest better-auth does differently from the oldest one that the plugin takes, each with
 * its reason. All of it is better-auth's own; whatever else fails with the newest is a failure.
 * `npm run test:newest` says which one runs.
 */

const isNewest = process.env.BETTER_AUTH === "newest";
const differs = <T>(oldest: T, newest: T): T => (isNewest ? newest : oldest);

/** A link that changes an email names its user, and is used up when the email is another one. */
export const USED_EMAIL_CHANGE = differs("USER_NOT_FOUND", "INVALID_TOKEN");

/** Who follows a link that changes an email is not signed in by it any more. */
export const EMAIL_CHANGE_SIGNS_IN = differs(true, false);

/** A password reset that is refused leaves its token: both are in one transaction. */
export const REFUSED_RESET_KEEPS_TOKEN = differs(false, true);

/** Endpoints pass on why a credential of an ended session was refused. */
export const ENDED_SESSION_IS_NAMED = differs(true, false);

/** The endpoint reads the session again that a hook has read. */
export const LINK_SOCIAL_QUERIES = differs(0, 2);

/** A linked account is written with one query less. */
export const LINKING_QUERIES = differs(1, 0);

/** The admin plugin refuses an `id` instead of leaving it out. */
export const ID_IS_REFUSED = differs(false, true);

/** A second factor is not set up with an API key. */
export const KEY_ENABLES_SECOND_FACTOR = differs(true, false);

/** A phone number is set by verifying it alone, so sign-up does not take one. */
export const SIGN_UP_TAKES_PHONE = differs(true, false);

/** Expired verifications are deleted once a minute, not by every request that reads one. */
export const CLEANS_UP_ALWAYS = differs(true, false);

/** Zoom shows its options. */
export const ZOOM_SHOWS_OPTIONS = differs(false, true);

/** A provider of genericOAuth() reads the user from the id token alone, if one is sent. */
export const ID_TOKEN_SPEAKS_ALONE = differs(false, true);

/** A provider of genericOAuth() that did not answer at startup is asked again when it is needed. */
export const ASKS_PROVIDERS_AGAIN = differs(false, true);
