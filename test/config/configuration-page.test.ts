import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { z } from 'zod';
import { configurationPage } from '../../scripts/configuration-page.ts';
import { envSchema, SECRET_VARIABLES } from '../../src/platform/config/config.ts';
import { GROUPS } from '../../src/platform/config/variables.ts';
import { ROOT } from '../support/start/process.ts';

const page = configurationPage();

it('docs/configuration.md matches the schema of the variables', () => {
  expect(readFileSync(join(ROOT, 'docs/configuration.md'), 'utf8')).toBe(page);
});

it('the reference lists every variable once, and marks the secrets', () => {
  const rows = Array.from(
    page.matchAll(/^\| `([A-Z_]+)`( ●)? \| .+ \| .+ \| .+ \| .* \| (?:gateway|worker|both) \|$/gm),
  );
  expect(rows.map(([, name]) => name)).toEqual(envSchema.keyof().options);
  expect(new Set(rows.flatMap(([, name, mark]) => (mark ? [name] : [])))).toEqual(SECRET_VARIABLES);
});

it('the reference gives defaults, formats and where a variable is required', () => {
  expect(page).toMatch(/^\| `PORT` \| .+ \| a port number, 0 to 65535 \| `4000` \| {2}\| gateway \|$/m);
  expect(page).toMatch(/^\| `DATABASE_URL` ● \| .+ \| .+ \| embedded in `DATA_DIR` \| production, roles \| both \|$/m);
  expect(page).toMatch(/^\| `JWT_SECRET_USER` ● \| .+ \| at least 32 bytes \| .+ \| production \| gateway \|$/m);
});

it('a variable without a description is reported', () => {
  const groups = { ...GROUPS, features: { ...GROUPS.features, NEW_LIMIT: z.string().optional() } };
  expect(() => configurationPage(groups)).toThrow('NEW_LIMIT has no description');
});
