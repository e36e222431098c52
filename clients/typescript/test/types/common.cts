// The same from CommonJS.
import { Sidecar, type Event } from "@sidecar/client";

export const spawn: typeof Sidecar.spawn = Sidecar.spawn.bind(Sidecar);
export const type = (event: Event): string => event.type;
