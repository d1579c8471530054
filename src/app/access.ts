import { ClientPages } from '../access/clients/clients.service.ts';
import { LoginLocks } from '../access/credentials/login-locks.ts';
import type { Passwords } from '../access/credentials/passwords.ts';
import { ClientGuards } from '../access/limits/client-guards.ts';
import { ClientLimits, Throttle, WrongSecrets } from '../access/limits/client-limits.ts';
import { QuotaCounts, QuotaStore } from '../access/limits/quota-counts.ts';
import { AccessDirectory, DenyList } from '../access/revocation/access-cache.ts';
import { AccessChanges } from '../access/revocation/access-changes.ts';
import { AccessWatch, followEnds } from '../access/revocation/access-watch.ts';
import { DatabaseClock } from '../access/revocation/database-clock.ts';
import { type NewSession, Sessions } from '../access/revocation/sessions.ts';
import { PasswordCheck, SupervisorPages, Supervisors, strangers } from '../access/supervisors/supervisors.service.ts';
import { RefreshTokens, Revocations, SpentTokens, TokenManagement } from '../access/tokens/revocations.ts';
import { importJwtKeys, TokenAuthenticator, TokenVerifier } from '../access/tokens/token-authenticator.ts';
import { TokenIssuer } from '../access/tokens/token-issuer.ts';
import { ClientAdministration } from '../features/clients/client-administration.service.ts';
import { ConsoleSessions } from '../features/oauth/console-sessions.service.ts';
import { Grants } from '../features/oauth/token-endpoint.service.ts';
import { SupervisorAdministration } from '../features/supervisors/supervisor-administration.service.ts';
import type { Log } from '../lib/log.ts';
import type { Cache } from '../platform/cache/cache.ts';
import { type RotatingSecret, type Secrets, secretsOf } from '../platform/config/secrets.ts';
import type { Db } from '../platform/database/database.ts';
import type { Database } from '../platform/database/open-database.ts';

/** Builds the lists of clients and supervisors, which need no secret. */
export function buildAccessPages(db: Db) {
  return { clientPages: new ClientPages(db), supervisorPages: new SupervisorPages(db) };
}

/** The dependencies of the administration of clients and supervisors, in a process that verifies no tokens. */
interface AdministrationDependencies {
  database: Pick<Database, 'db' | 'isEmbedded' | 'generation'>;
  /** The key of the hashes of client secrets (HMAC), current and previous. */
  pepper: RotatingSecret;
  passwords: Passwords;
  maxSessions: number;
  /** Returns the current time in milliseconds since 1970. */
  nowMs(): number;
  /** Whether the times of tokens come from `nowMs`; if false, they come from the database's clock. */
  isOwnClock: boolean;
  /** Called after a session was created or prolonged. Never rejects. */
  mirror?: ((session: NewSession) => Promise<void>) | undefined;
  /** Called with an error of reading or applying revocations (`access_changes`). */
  onError(error: unknown): void;
}

/** Builds the administration of clients and supervisors. Nothing polls until it is started. */
export function buildAdministration({
  database,
  database: { db },
  pepper,
  passwords,
  maxSessions,
  nowMs,
  isOwnClock,
  mirror,
  onError,
}: AdministrationDependencies) {
  const clock = new DatabaseClock({ db, isOwn: isOwnClock, nowMs });
  const generation = () => database.generation;
  const changes = new AccessChanges({ db, clock, generation, nowMs, onError });
  const sessions = new Sessions({ db, generation, changes, maxSessions, clock, mirror });
  const locks = new LoginLocks({ db, nowMs });
  const supervisors = new Supervisors(db);
  const strangerOf = strangers(pepper.current);
  const passwordCheck = new PasswordCheck({
    ...{ supervisors, passwords, locks, strangerOf },
    strangersOf: (name) => secretsOf(pepper).map((secret) => strangers(secret)(name)),
  });
  return {
    clock,
    changes,
    sessions,
    locks,
    passwords,
    passwordCheck,
    strangerOf,
    ...buildAccessPages(db),
    clientAdministration: new ClientAdministration({ db, changes, clock, sessions, pepper: pepper.current, nowMs }),
    supervisors,
    supervisorAdministration: new SupervisorAdministration({
      db,
      changes,
      sessions,
      passwords,
      passwordCheck,
      locks,
      nowMs,
    }),
  };
}

/**
 * Builds all services that authenticate and authorize callers; called once in a process. What must be stopped at
 * shutdown is pushed onto `stack`.
 */
export async function buildAccess(
  {
    cache,
    secrets,
    log,
    issuer: issuerUrl,
    ...dependencies
  }: Omit<AdministrationDependencies, 'onError' | 'pepper'> & {
    cache: Cache;
    secrets: Pick<Secrets, 'jwt' | 'pepper'>;
    log: Log;
    /** Returns the base URL that tokens carry as their issuer (`iss`). */
    issuer(): string;
  },
  stack: AsyncDisposableStack,
) {
  const { database, nowMs } = dependencies;
  const { db } = database;
  const keys = await importJwtKeys(secrets.jwt);
  const administration = buildAdministration({
    ...dependencies,
    pepper: secrets.pepper,
    onError: (error) => log.error({ err: error }, 'could not load revoked sessions and tokens'),
  });
  const { clock, changes, sessions, supervisors, passwordCheck } = administration;
  stack.defer(() => changes.stop());
  const verifier = new TokenVerifier(keys);
  const denied = new DenyList({ db, waitUntilFresh: () => changes.waitUntilFresh(), nowMs });
  const directory = new AccessDirectory({ db, pepper: secrets.pepper, denied, nowMs });
  const authenticator = new TokenAuthenticator({ verifier, directory, sessions, nowMs });
  const counts = new QuotaCounts({ usage: new QuotaStore(db), log });
  counts.start();
  stack.defer(() => counts.stop());
  const limits = new ClientLimits({ cache, counts, log, nowMs });
  const guards = new ClientGuards({ limits, clients: directory });
  const watch = new AccessWatch({
    check: (principal) => authenticator.check(principal),
    recheck: (principal) => authenticator.recheck(principal, true),
    guards,
    nowMs,
    onError: (error) =>
      log.error(
        { err: error },
        'could not check the access of a connection; closing it, or checking again if its client was changed',
      ),
  });
  followEnds({ changes, denied, directory, sessions, watch });
  const throttle = new Throttle({ cache, nowMs });
  const wrongSecrets = new WrongSecrets(nowMs);
  const issuer = new TokenIssuer({ keys, issuer: issuerUrl, clock });
  const spent = new SpentTokens({ db, nowMs });
  const revocations = new Revocations({ db, changes, sessions, nowMs });
  const refreshTokens = new RefreshTokens({ verifier, directory, supervisors, sessions, spent, nowMs });
  const grants = new Grants({ passwordCheck, refreshTokens, spent, revocations, sessions, issuer });
  return {
    ...administration,
    verifier,
    denied,
    directory,
    authenticator,
    watch,
    limits,
    guards,
    throttle,
    wrongSecrets,
    issuer,
    grants,
    consoleSessions: new ConsoleSessions({
      directory,
      throttle,
      grants,
      verifier,
      refreshTokens,
      revocations,
    }),
    tokenManagement: new TokenManagement({
      authenticator,
      directory,
      supervisors,
      refreshTokens,
      revocations,
    }),
  };
}
