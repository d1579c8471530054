import { mkdirSync, writeFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { gatewayJsonSchema } from '../src/gateway/endpoints/gateway-config.ts';

// Writes schema/gateway.schema.json, which is committed, so that editors complete gateway.yaml.
const folder = resolve(import.meta.dirname, '../schema');
mkdirSync(folder, { recursive: true });
writeFileSync(resolve(folder, 'gateway.schema.json'), gatewayJsonSchema());
