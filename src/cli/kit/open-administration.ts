import { buildAdministration } from '../../access/access.ts';
import { Passwords } from '../../access/sessions/passwords.ts';
import { MemoryCache } from '../../platform/cache/memory-cache.ts';
import { readConfig } from '../../platform/config/config.ts';
import { readSecrets } from '../../platform/config/secrets.ts';
import type { CommandInput } from './command.ts';
import { adviceOf, openMigrated } from './open-database.ts';

/**
 * Opens the services that administer clients and supervisors; running processes learn of their changes from the
 * database. `operation` is the GraphQL operation with the same effect, which the user can call on an embedded run.
 * @throws CommandError when the schema is older than this release.
 */
export async function openAdministration({ env, stack }: CommandInput, operation: string) {
  const { config, env: variables } = readConfig(env);
  const database = await openMigrated(config, { advice: adviceOf(operation) }, stack);
  const administration = buildAdministration({
    database,
    cache: stack.adopt(new MemoryCache(), (opened) => opened.stop()),
    isCacheShared: false,
    pepper: readSecrets(config, variables).pepper,
    passwords: { hash: (password: string) => new Passwords().hash(password) },
    maxSessions: config.maxSessions,
    nowMs: Date.now,
    isOwnClock: database.isEmbedded,
    onError: () => undefined,
  });
  return { ...administration, db: database.db };
}
