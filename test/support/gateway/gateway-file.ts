import { changingFile, tableText } from './reloaded.ts';

/** The shipped `gateway.yaml` with further services and endpoints, and more settings. */
export async function gatewayFile(services: Record<string, unknown>, endpoints: object[] = [], more: object = {}) {
  return changingFile(tableText({ services, endpoints, ...more }));
}
