import { defaultRows } from "../support/provider-instance";
import { describeCases } from "./provider-cases";

// Every provider that the installed better-auth has, as it is without options.
describeCases(defaultRows);
