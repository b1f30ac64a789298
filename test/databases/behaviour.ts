import { describe } from "vitest";
import { deletesTenants } from "./deletion";
import { invitesPeople } from "./invitations";
import { keepsSidesApart } from "./isolation";
import { survivesRaces } from "./races";
import { followsTheSpecification } from "./specification";
import type { Ground } from "./store";
import { keepsValues } from "./values";

/** One suite for every adapter, database and kind of ids: see what stands on which ground. */
export function behaves(ground: Ground) {
  describe(`${ground.name}, ${ground.ids} ids`, () => {
    followsTheSpecification(ground);
    keepsValues(ground);
    keepsSidesApart(ground);
    deletesTenants(ground);
    invitesPeople(ground);
    survivesRaces(ground);
  });
}
