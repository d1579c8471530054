import { globSync, statSync } from 'node:fs';
import { userInfo } from 'node:os';
import { setTimeout } from 'node:timers/promises';
import { readConfig } from '../../platform/config/config.ts';
import { knownAuditKeys } from '../../platform/config/secrets.ts';
import type { Db } from '../../platform/database/database.ts';
import { type CommandBody, CommandError, UsageError } from '../kit/command.ts';
import { text } from '../kit/flags.ts';
import { openMigrated, openSeals, requireKey } from '../kit/open-services.ts';
import { counted, Progress } from '../kit/progress.ts';
import { FILTER_FLAGS, filterFlagsOf, filterOf } from './audit-list.ts';

const MAX_REASON = 1_000;
const PAGE = 'docs/operations/leaked-secret.md';

/** `portcullis audit redact`: removes what callers wrote from audit records that a filter chooses. */
export const auditRedact: CommandBody = {
  description: [
    'Removes bodies, query, path and headers from the audit records that match all given filters, and the correlation id',
    'unless it is a UUID. Their digests stay, and signed seals say who removed what, when and why, so that audit verify',
    'holds. At least one filter is required. Without --yes it only counts the records. It connects as the owner of the',
    'tables (MIGRATE_DATABASE_URL). Run it again for records that were still in a spool, or after an interruption.',
  ].join('\n'),
  flags: {
    ...FILTER_FLAGS,
    reason: { help: 'why, for the seal; do not quote the secret', required: 'TEXT' },
    yes: { help: 'redact the records; they cannot be restored', isSwitch: true },
  },
  examples: [
    'portcullis audit redact --correlation-id 0190b8a4-6a54-7c3e-9d2f-3f0c5a1b2c3d --reason "key in a body, INC-7"',
    'portcullis audit redact --path "/v1/wallets/*" --since 2026-11-21T10:00:00Z --reason "key in a URL" --yes',
  ],
  async run({ flags, env, stack, printError, json, answer }) {
    const [filter, filterFlags, reason = ''] = [filterOf(flags), filterFlagsOf(flags), text(flags, 'reason')];
    if (Object.keys(filterFlags).length === 0)
      throw new UsageError(`give at least one of --${Object.keys(FILTER_FLAGS).join(', --')}`);
    if (reason.trim() === '' || reason.length > MAX_REASON)
      throw new UsageError(`--reason must have 1 to ${MAX_REASON} characters`);
    const { config, env: variables } = readConfig(env);
    const [{ AUDIT_DELAY_MS }, { AuditRedaction }] = await Promise.all([
      import('../../audit/audit-writer.ts'),
      import('../../audit/verification/redaction.ts'),
    ]);
    const databaseUrl = config.migrateDatabaseUrl ?? config.databaseUrl;
    const { db } = await openMigrated({ ...config, databaseUrl }, stack);
    const keys = knownAuditKeys(config, variables);
    await checkOwner(db);
    await requireKey(db, keys);
    const onError = (error: unknown) => printError(`could not copy the seal outside the database: ${String(error)}\n`);
    const redaction = new AuditRedaction(
      db,
      await openSeals(config, db, stack, { key: () => keys[0], onError }),
      filter,
    );
    // Running processes write what is in their spools meanwhile.
    await setTimeout(AUDIT_DELAY_MS);
    const matching = await redaction.count();
    const spooled = globSync('{*.seg,refused/*.seg,refused.ndjson}', { cwd: config.auditSpoolDir }).filter(
      (name) => (statSync(`${config.auditSpoolDir}/${name}`, { throwIfNoEntry: false })?.size ?? 0) > 0,
    );
    const late =
      spooled.length === 0
        ? ''
        : `Records in ${config.auditSpoolDir} are not in the database yet (${spooled.join(', ')}): see ${PAGE}.\n`;
    if (flags.yes !== true) {
      const summary = `${counted(matching)} records match. Nothing was changed: repeat this with --yes to redact them.\n`;
      return answer({ matching, redacted: 0, spooled }, summary + late);
    }
    const progress = new Progress(process.stderr);
    stack.defer(() => progress.end());
    if (!json) printError(`${counted(matching)} records match.\n`);
    const redacted = await redaction.redact({ by: userInfo().username, reason, filter: filterFlags }, (redactedCount) =>
      progress.show({
        done: redactedCount,
        total: matching,
        text: `${counted(redactedCount)} of ${counted(matching)}`,
      }),
    );
    progress.end();
    return answer({ matching, redacted, spooled }, `Redacted ${counted(redacted)} audit records.\n${late}`);
  },
};

/** @throws CommandError unless the role owns the audit records. */
async function checkOwner(db: Db): Promise<void> {
  const [facts] = await db.unscoped('roles are global').raw(
    (sql) => sql<{ name: string; isOwner: boolean }>`
      select current_user as name, pg_has_role(relowner, 'member') as "isOwner" from pg_class where oid = 'audit_records'::regclass`,
  );
  if (!facts?.isOwner)
    throw new CommandError(
      `the role ${facts?.name} does not own the audit records: set MIGRATE_DATABASE_URL, see ${PAGE}`,
    );
}
