import { mkdirSync, writeFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { readGatewayConfig } from '../src/gateway/endpoints/gateway-config.ts';
import { DOCUMENTED, printedOpenApi } from './openapi.ts';

// Writes schema/openapi.json, which is committed and served: a change of the interface shows in the diff.
const root = resolve(import.meta.dirname, '..');
const folder = resolve(root, 'schema');
const document = printedOpenApi(readGatewayConfig(resolve(root, 'gateway.yaml')), DOCUMENTED);
mkdirSync(folder, { recursive: true });
writeFileSync(resolve(folder, 'openapi.json'), document);
