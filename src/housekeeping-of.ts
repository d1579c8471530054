import { AuditRetention } from './audit/audit-retention.ts';
import type { Context } from './context.ts';
import { Housekeeping } from './lib/housekeeping.ts';
import { deleteExpiredRows } from './oauth/expired-rows.ts';
import { deleteOldEvents } from './realtime/event-retention.ts';

/** What an instance does when there is time: rows that are past their days go. */
export function housekeepingOf({ config, database: { db }, idempotentAnswers, nowMs, log }: Context): Housekeeping {
  const audit = new AuditRetention({ db, nowMs, retentionDays: config.auditRetentionDays });
  return new Housekeeping({
    tasks: {
      'audit records': () => audit.keep(),
      'transaction events': () => deleteOldEvents({ db, nowMs, retentionDays: config.eventsRetentionDays }),
      'ended tokens': () => deleteExpiredRows({ db, nowMs }),
      'idempotent answers': () => idempotentAnswers.prune(),
    },
    onError: (error, task) => log.error({ err: error, task }, 'what is past its days could not be put away'),
  });
}
