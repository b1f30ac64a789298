type IsAny<T> = 0 extends 1 & T ? true : false;

/** True where `any` hides in a type or in one of its fields, however deep. */
export type HasAny<T> =
  IsAny<T> extends true
    ? true
    : T extends Date | ((...args: never) => unknown)
      ? false
      : T extends readonly (infer Item)[]
        ? HasAny<Item>
        : T extends object
          ? true extends { [Key in keyof T]-?: HasAny<T[Key]> }[keyof T]
            ? true
            : false
          : false;

/**
 * Code for the compiler only: `npm run typecheck` reads it, nobody runs it. Lines that have to be
 * refused stand under a `@ts-expect-error`, which is an error itself when they are not.
 */
export function compiles(_code: () => unknown): void {}
