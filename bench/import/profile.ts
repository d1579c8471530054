import { mkdirSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { breakDown, type CpuProfile } from '../lib/cpu-profile.ts';
import { spentTable } from '../lib/profile.ts';
import type { Table } from '../lib/report.ts';
import { seedWorld, type World } from '../lib/world.ts';
import { type Effort, newNode, writeFile } from './measure.ts';
import { importByProduct } from './product-import.ts';

const SAMPLE_US = 250;

/** Where `users import` spends its time, from the start of its process to its end. */
export async function profileImport(world: World, { rows }: Effort): Promise<Table[]> {
  await seedWorld(world);
  const file = await writeFile(world, rows);
  const profiles = join(world.dataDir, 'profiles');
  mkdirSync(profiles);
  const args = ['--cpu-prof', `--cpu-prof-dir=${profiles}`, `--cpu-prof-interval=${SAMPLE_US}`];
  await importByProduct(world, file, await newNode(world.servers.DATABASE_URL ?? ''), args);
  const [name] = readdirSync(profiles);
  if (name === undefined) throw new Error('the product wrote no profile');
  const profile: CpuProfile = JSON.parse(readFileSync(join(profiles, name), 'utf8'));
  const { total, groups, self, inclusive } = breakDown(profile, 0, Number.POSITIVE_INFINITY);
  return [
    spentTable('self time by package or folder, a row', groups, total, rows),
    spentTable('self time by function, a row', self, total, rows),
    spentTable('time of a function of the product with what it calls, a row', inclusive, total, rows),
  ];
}
