import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { ROOT } from '../support/start/process.ts';

it('rows are plain objects: only the schema migrations use an entity manager', () => {
  const knowing = globSync('src/**/*.ts', { cwd: ROOT }).filter((file) =>
    /\bem\b|\borm\.|EntityManager|EntityRepository|getRepository/.test(
      readFileSync(join(ROOT, file), 'utf8').replaceAll(/\/\*[\s\S]*?\*\/|\/\/.*/g, ''),
    ),
  );
  expect(knowing).toEqual(['src/platform/database/schema-migrations.ts']);
});
