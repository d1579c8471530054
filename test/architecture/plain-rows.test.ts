import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { ROOT } from '../start/process.ts';

it('rows are plain: nothing but the opening of the database and its migration knows an entity manager', () => {
  const knowing = globSync('src/**/*.ts', { cwd: ROOT }).filter((file) =>
    /\bem\b|\borm\.|EntityManager|EntityRepository|getRepository/.test(
      readFileSync(join(ROOT, file), 'utf8').replaceAll(/\/\*[\s\S]*?\*\/|\/\/.*/g, ''),
    ),
  );
  expect(knowing.sort()).toEqual(['src/platform/database/database.ts', 'src/platform/database/schema-migrations.ts']);
});
