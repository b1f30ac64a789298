import { pagesOf as pages } from "../../framework";
import type { Subject } from "../instance/subject";

const PAGE = 500;

/** All rows of a table, a page at a time. */
export const pagesOf = <T extends { id: string }>({ raw }: Subject, model: string) =>
  pages<T>(raw, model, PAGE);
