import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { World } from '../lib/world.ts';

/** What production requires to be given, beside the servers and the secret of user tokens: what the seeding generated. */
export function productionEnv({ dataDir }: World): Record<string, string> {
  const generated = JSON.parse(readFileSync(join(dataDir, 'secrets.json'), 'utf8'));
  return {
    NODE_ENV: 'production',
    HOST: '127.0.0.1',
    PUBLIC_URL: 'http://127.0.0.1',
    JWT_SECRET_DISCOVER: generated.jwtDiscover,
    JWT_SECRET_LEGACY: generated.jwtLegacy,
    SECRET_PEPPER: generated.pepper,
    WEBHOOK_USERNAME: 'chain-processor',
    WEBHOOK_PASSWORD: generated.webhookPassword,
  };
}
