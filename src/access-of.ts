import type { Context } from './context.ts';
import { AccessChanges } from './oauth/access-changes.ts';
import { AccessDirectory } from './oauth/access-directory.ts';
import { AccessWatch } from './oauth/access-watch.ts';
import { ClientLimits } from './oauth/client-limits.ts';
import { ClientUsage } from './oauth/client-usage.ts';
import { DatabaseClock } from './oauth/database-clock.ts';
import { DenyList } from './oauth/deny-list.ts';
import { followEnds } from './oauth/follow-ends.ts';
import { guardsOf } from './oauth/guards.ts';
import { Sessions } from './oauth/sessions.ts';
import { Throttle } from './oauth/throttle.ts';
import { TokenJudge } from './oauth/token-judge.ts';

interface AccessParts
  extends Pick<Context, 'config' | 'database' | 'cache' | 'clients' | 'verifier' | 'log' | 'nowMs'> {
  /** Whether a test makes the time. */
  isTimeMade: boolean;
}

/** What says whether a token is still good, and hears of it when one has ended. */
export function openAccess(
  { config, database, cache, clients, verifier, log, nowMs, isTimeMade }: AccessParts,
  stack: AsyncDisposableStack,
) {
  const { db, isEmbedded } = database;
  const clock = new DatabaseClock({ db, isOwn: isEmbedded || isTimeMade, nowMs });
  stack.defer(() => clock.stop());
  const onError = (error: unknown) => log.error({ err: error }, 'what has ended cannot be read or put away');
  const changes = new AccessChanges({ db, nowMs, onError });
  stack.defer(() => changes.stop());
  const isShared = config.redisUrl !== undefined || isEmbedded;
  const sessions = new Sessions({ db, cache, isShared, changes, maxSessions: config.maxSessions, nowMs });
  const denied = new DenyList({ db, nowMs });
  const directory = new AccessDirectory({ db, clients, denied, nowMs });
  const judge = new TokenJudge({ verifier, directory, sessions, nowMs });
  const watch = new AccessWatch({
    isGood: (principal) => judge.isGood(principal),
    admits: (principal) => directory.admits(principal),
  });
  followEnds({ cache, changes, denied, directory, sessions, watch });
  return { clock, changes, denied, directory, sessions, judge, watch };
}

/** What counts the requests of clients, and their wrong secrets. */
export function openLimits(
  { database, cache, log, nowMs }: Pick<Context, 'database' | 'cache' | 'log' | 'nowMs'>,
  stack: AsyncDisposableStack,
) {
  const limits = new ClientLimits({ cache, usage: new ClientUsage(database.db), log, nowMs });
  limits.start();
  stack.defer(() => limits.stop());
  const { guards, decisions: guardDecisions } = guardsOf(limits);
  return { limits, guards, guardDecisions, throttle: new Throttle({ cache, nowMs }) };
}
