import { mkdirSync, writeFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { printedOpenApi } from '../src/api/openapi/openapi.ts';
import { DOCUMENTED } from '../src/app/documented.ts';
import { readGatewayConfig } from '../src/gateway/endpoints/gateway-config.ts';

// Writes schema/openapi.json, which is committed and served: a change of the interface shows in the diff.
const root = resolve(import.meta.dirname, '..');
const folder = resolve(root, 'schema');
const document = printedOpenApi(readGatewayConfig(resolve(root, 'gateway.yaml')), DOCUMENTED);
mkdirSync(folder, { recursive: true });
writeFileSync(resolve(folder, 'openapi.json'), document);
