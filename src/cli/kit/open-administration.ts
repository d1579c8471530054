import { Passwords } from '../../access/credentials/passwords.ts';
import { MemoryCache } from '../../platform/cache/memory-cache.ts';
import { readConfig } from '../../platform/config/config.ts';
import { readSecrets } from '../../platform/config/secrets.ts';
import type { CommandInput } from './command.ts';
import { openMigrated } from './open-database.ts';
import type { Advice } from './running-instance.ts';

/**
 * Opens the services that administer clients and supervisors; running processes learn of their changes from the
 * database.
 * @throws CommandError when the schema is older than this release.
 */
export async function openAdministration({ env, stack }: CommandInput, advice: Advice) {
  const { config, env: variables } = readConfig(env);
  const database = await openMigrated(config, { advice }, stack);
  const { buildAdministration } = await import('../../access/access.ts');
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
