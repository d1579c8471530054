import type { GatewayConfig } from '../gateway/gateway-config.ts';
import { openApiDocument } from './document.ts';

/** The largest uint64 as a double prints it, and as it is. */
const ROUNDED_UINT64 = String(Number(2n ** 64n - 1n));
const MAX_UINT64 = String(2n ** 64n - 1n);

/** The document for `schema/openapi.json`; always the same text. */
export function printedOpenApi(config: GatewayConfig): string {
  return `${JSON.stringify(openApiDocument(config), null, 2).replaceAll(ROUNDED_UINT64, MAX_UINT64)}\n`;
}
