import { readFileSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parse } from 'yaml';

interface GatewayFile extends AsyncDisposable {
  path: string;
}

/** The shipped `gateway.yaml` with these services in the place of its own, further endpoints, and more settings. */
export async function gatewayFile(
  services: Record<string, unknown>,
  endpoints: object[] = [],
  more: object = {},
): Promise<GatewayFile> {
  const shipped = parse(readFileSync(join(import.meta.dirname, '../../../gateway.yaml'), 'utf8'));
  const folder = await mkdtemp(join(tmpdir(), 'portcullis-gateway-'));
  const path = join(folder, 'gateway.yaml');
  const alias = { deprecated_at: '2026-11-01T00:00:00Z', sunset: '2027-11-01T00:00:00Z' };
  const changed = {
    ...shipped,
    services: { ...shipped.services, ...services },
    webhook_alias: alias,
    endpoints: [...shipped.endpoints, ...endpoints],
    ...more,
  };
  await writeFile(path, JSON.stringify(changed));
  return { path, [Symbol.asyncDispose]: () => rm(folder, { recursive: true, force: true }) };
}
