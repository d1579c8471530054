import { isDeepStrictEqual } from 'node:util';
import type { GatewayConfig } from './gateway-config.ts';

/** How many of what differ between two tables, in the names of the log. */
export interface TableChanges {
  endpoints: number;
  endpoints_added: number;
  endpoints_removed: number;
  endpoints_changed: number;
  services_added: number;
  services_removed: number;
  services_changed: number;
}

/** What another table changes. An endpoint is known by its methods and path, a service by its name. */
export function tableChanges(before: GatewayConfig, after: GatewayConfig): TableChanges {
  const endpoints = difference(endpointsOf(before), endpointsOf(after));
  const services = difference(new Map(Object.entries(before.services)), new Map(Object.entries(after.services)));
  return {
    endpoints: after.endpoints.length,
    endpoints_added: endpoints.added,
    endpoints_removed: endpoints.removed,
    endpoints_changed: endpoints.changed,
    services_added: services.added,
    services_removed: services.removed,
    services_changed: services.changed,
  };
}

function endpointsOf({ endpoints }: GatewayConfig): ReadonlyMap<string, unknown> {
  return new Map(endpoints.map((endpoint) => [`${endpoint.methods.join()} ${endpoint.path}`, endpoint]));
}

function difference(before: ReadonlyMap<string, unknown>, after: ReadonlyMap<string, unknown>) {
  let added = 0;
  let changed = 0;
  for (const [key, value] of after) {
    if (!before.has(key)) added += 1;
    else if (!isDeepStrictEqual(before.get(key), value)) changed += 1;
  }
  return { added, changed, removed: before.size + added - after.size };
}
