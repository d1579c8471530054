import { mkdirSync, writeFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { readGatewayConfig } from '../src/gateway/gateway-config.ts';
import { printedOpenApi } from '../src/openapi/print.ts';

// Writes schema/openapi.json, which is committed and served: a change of the interface shows in the diff.
const root = resolve(import.meta.dirname, '..');
const folder = resolve(root, 'schema');
mkdirSync(folder, { recursive: true });
writeFileSync(resolve(folder, 'openapi.json'), printedOpenApi(readGatewayConfig(resolve(root, 'gateway.yaml'))));
