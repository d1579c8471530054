import { parseArgs } from 'node:util';
import { onFilledWorld } from './graphql/fill.ts';
import { compare } from './graphql/measure.ts';
import { profile } from './graphql/profile.ts';
import { tablesOf } from './graphql/tables.ts';
import type { Effort } from './lib/pairs.ts';
import { print, type Table } from './lib/report.ts';

const EFFORT: Effort = { pairs: 5, requests: 1_500, warmUp: 2_000 };
const CONNECTIONS = [16, 64];

/** Measures a page of fifty accounts with their wallets over GraphQL, on servers, beside other ways to answer it. */
export async function measureGraphql(effort: Effort = EFFORT): Promise<Table[]> {
  const tables: Table[] = [];
  await onFilledWorld(async (world) => {
    tables.push(...tablesOf(await compare(world, CONNECTIONS, effort)));
  });
  return tables;
}

if (import.meta.main) {
  const { values } = parseArgs({
    options: {
      pairs: { type: 'string', default: `${EFFORT.pairs}` },
      requests: { type: 'string', default: `${EFFORT.requests}` },
      profile: { type: 'boolean', default: false },
    },
  });
  const effort = { ...EFFORT, pairs: Number(values.pairs), requests: Number(values.requests) };
  if (values.profile) await onFilledWorld(async (world) => (await profile(world, effort)).forEach(print));
  else (await measureGraphql(effort)).forEach(print);
}
