import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Migrator, TSMigrationGenerator } from '@mikro-orm/migrations';
import { openDatabase } from '../src/platform/database/open-database.ts';
import { migrate } from '../src/platform/database/schema-migrations.ts';
import { comparableOrm } from './schema-orm.ts';

// Compares the entities with the schema that the migrations make in an empty database, and writes the difference to a
// new migration in /migrations.

const name = process.argv[2] ?? '';
if (!/^[a-z0-9]+(?:-[a-z0-9]+)*$/.test(name)) {
  process.stderr.write('Usage: npm run -s migration:create NAME, where NAME is like account-labels\n');
  process.exit(1);
}

const file = `migration-${new Date().toISOString().slice(0, 10).replaceAll('-', '')}-${name}`;

/** Writes a migration like the others: forward only, and known by the name of its file. */
class Generator extends TSMigrationGenerator {
  override generateMigrationFile(_timestamp: string, { up }: { up: string[] }): string {
    const className = file.replace(/(?:^|-)(.)/g, (_, letter: string) => letter.toUpperCase());
    const statements = up.map((statement) => this.createStatement(statement, 4)).join('');
    return `import { Migration } from '@mikro-orm/migrations';

export class ${className} extends Migration {
  override up(): void {
${statements.trimEnd()}
  }
}
`;
  }
}

const dataDir = await mkdtemp(join(tmpdir(), 'portcullis-schema-'));
try {
  await using database = await openDatabase({ dataDir });
  await migrate(database);
  const orm = await comparableOrm(database);
  orm.config.set('migrations', { ...orm.config.get('migrations'), generator: Generator, fileName: () => file });
  const { fileName } = await new Migrator(orm.em).create();
  process.stdout.write(fileName ? `migrations/${fileName}\n` : 'the entities match the schema: nothing to migrate\n');
} finally {
  await rm(dataDir, { recursive: true });
}
