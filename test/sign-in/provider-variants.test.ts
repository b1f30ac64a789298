import { variantRows } from "../support/provider-instance";
import { describeCases } from "./provider-cases";

// Providers that live elsewhere, or are asked in another way, because an option says so.
describeCases(variantRows);
