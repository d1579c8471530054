import { hash, type KeyObject } from 'node:crypto';
import { createReadStream, globSync, readFileSync, type Stats, statSync } from 'node:fs';
import { userInfo } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout } from 'node:timers/promises';
import type { ExportManifest } from '../../audit/export/record-export.ts';
import type { VerificationReport } from '../../audit/verification/verification.ts';
import { pgFromInstant } from '../../lib/instants.ts';
import { readConfig } from '../../platform/config/config.ts';
import { knownAuditKeys } from '../../platform/config/secrets.ts';
import type { Db } from '../../platform/database/database.ts';
import {
  type CommandBody,
  CommandError,
  counted,
  EXIT_FAILED,
  EXIT_OK,
  Interruption,
  many,
  printable,
  UsageError,
} from '../kit/command.ts';
import { instant, text } from '../kit/flags.ts';
import { openMigrated, openSeals, recorder, requireKey } from '../kit/open-services.ts';
import { FILTER_FLAGS, filterFlagsOf, filterOf } from './audit-list.ts';

/** The system calls that fail where the folder cannot be written. */
const FILE_CALLS: ReadonlySet<unknown> = new Set([
  'mkdir',
  'open',
  'write',
  'fdatasync',
  'ftruncate',
  'rename',
  'scandir',
]);
const EXPORT_PAGE = 'docs/operations/audit-export.md';

/** `portcullis audit export`: exports audit records that a filter chooses, with what proves them to others. */
export const auditExport: CommandBody = {
  description: [
    'Writes the audit records that match all given filters to a folder, as CSV and JSON Lines, with a manifest that is signed',
    'by AUDIT_SIGNING_KEY, and the leaves of the records between them. With the checkpoints (AUDIT_CHECKPOINTS) and the',
    `public key anyone can verify them without Portcullis: ${EXPORT_PAGE}.`,
    'Verifies the period like audit verify, and exits with 1 if that has findings. After an interruption repeat the same command.',
  ].join(' '),
  flags: {
    ...FILTER_FLAGS,
    out: { help: 'new folder for the files, or the one of an interrupted export', required: 'DIR' },
  },
  examples: [
    'portcullis audit export --node ID --since 2026-11-01T00:00:00Z --until 2026-12-01T00:00:00Z --out november',
    'portcullis audit export --client ID --path "/v1/wallets/*" --out wallets --json',
  ],
  async run({ command, flags, env, stack, progress, answer }) {
    const { config, env: variables } = readConfig(env);
    const at = new Date().toISOString();
    const filter = filterOf(flags);
    const folder = text(flags, 'out') ?? '';
    const [key, ...former] = knownAuditKeys(config, variables);
    if (!key) throw new CommandError('set AUDIT_SIGNING_KEY, as the service has it: it signs the manifest');
    const [{ exportAudit }, { ExportError }] = await Promise.all([
      import('../../audit/export/record-export.ts'),
      import('../../audit/export/export-targets.ts'),
    ]);
    const { db } = await openMigrated(config, stack);
    const keys: readonly [KeyObject, ...KeyObject[]] = [key, ...former];
    const seals = await openSeals(config, db, stack, { key: () => key });
    const record = recorder(command, { db, seals, keys: () => keys });
    const asked = { filter: filterFlagsOf(flags), by: userInfo().username, at };
    // An export that is interrupted, or whose end cannot be recorded, leaves this record.
    await record({ filter: asked.filter, until: filter.until ?? at });
    const { signal } = stack.use(new Interruption());
    try {
      const manifest = await exportAudit({
        ...{ db, keys, folder, asked, filter: { ...filter, until: filter.until ?? at }, signal },
        onProgress: ({ what, done, total }) =>
          progress.show({ done, total, text: `${what} ${counted(done)} of ${counted(total)} records` }),
      });
      const { period, records } = manifest;
      const digest = hash('sha256', readFileSync(join(folder, 'manifest.json')));
      await record({ filter: asked.filter, period, records, manifest: digest });
      const exit = answer(manifest, exportText(folder, manifest));
      return manifest.verification.findings === 0 ? exit : EXIT_FAILED;
    } catch (error) {
      if (error instanceof ExportError) throw new CommandError(error.message);
      if (!(error instanceof Error && 'syscall' in error && FILE_CALLS.has(error.syscall))) throw error;
      throw new CommandError(`cannot write to ${folder} (${error.message}): repeat the command once that is possible`);
    }
  },
};

function exportText(
  folder: string,
  { records, positions, chains, unsealed, unchained, verification }: ExportManifest,
): string {
  const newer = 'they are newer than the last checkpoint of their process; export again in a minute';
  const lines = [
    `Exported ${many(records, 'record')} to ${folder}, with the leaves of ${many(positions, 'position')} in ${many(chains.length, 'chain')}.`,
    ...(unsealed === 0 ? [] : [`Not proven, because ${newer}: ${many(unsealed, 'record')}.`]),
    ...(unchained === 0 ? [] : [`Not proven, because they belong to no chain: ${many(unchained, 'record')}.`]),
    verification.findings === 0
      ? 'OK: audit verify finds no problem in this period.'
      : `FAILED: audit verify finds ${many(verification.findings, 'problem')} in this period: run it for the list.`,
    `Erasure, redaction and retention do not reach this copy: ${EXPORT_PAGE}.`,
  ];
  return lines.map((line) => `${line}\n`).join('');
}

const MAX_REASON = 1_000;
const LEAK_PAGE = 'docs/operations/leaked-secret.md';

/** `portcullis audit redact`: removes what callers wrote from audit records that a filter chooses. */
export const auditRedact: CommandBody = {
  description: [
    'Removes bodies, query, path and headers from the audit records that match all given filters, and the correlation id',
    'unless it is a UUID. Their digests stay, and signed seals say who removed what, when and why, so that audit verify',
    'holds. At least one filter is required. Without --yes it only counts the records. It connects as the owner of the',
    'tables (MIGRATE_DATABASE_URL). Run it again for records that were still in a spool, or after an interruption.',
  ].join(' '),
  flags: {
    ...FILTER_FLAGS,
    reason: { help: 'why, for the seal; do not quote the secret', required: 'TEXT' },
    yes: { help: 'redact the records; they cannot be restored', isSwitch: true },
  },
  examples: [
    'portcullis audit redact --correlation-id 0190b8a4-6a54-7c3e-9d2f-3f0c5a1b2c3d --reason "key in a body, INC-7"',
    'portcullis audit redact --path "/v1/wallets/*" --since 2026-11-21T10:00:00Z --reason "key in a URL" --yes',
  ],
  async run({ flags, env, stack, progress, printError, json, answer }) {
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
    const redaction = new AuditRedaction({
      db,
      seals: await openSeals(config, db, stack, { key: () => keys[0], onError }),
      filter,
    });
    // Running processes write what is in their spools meanwhile.
    await setTimeout(AUDIT_DELAY_MS);
    const matching = await redaction.count();
    const spooled = globSync('{*.seg,refused/*.seg,refused.ndjson}', { cwd: config.auditSpoolDir }).filter(
      (name) => (statSync(`${config.auditSpoolDir}/${name}`, { throwIfNoEntry: false })?.size ?? 0) > 0,
    );
    const late =
      spooled.length === 0
        ? ''
        : `Records in ${config.auditSpoolDir} are not in the database yet (${spooled.join(', ')}): see ${LEAK_PAGE}.\n`;
    if (flags.yes !== true) {
      const summary = `${counted(matching)} records match. Nothing was changed: repeat this with --yes to redact them.\n`;
      return answer({ matching, redacted: 0, spooled }, summary + late);
    }
    if (!json) printError(`${counted(matching)} records match.\n`);
    const redacted = await redaction.redact({ by: userInfo().username, reason, filter: filterFlags }, (redactedCount) =>
      progress.show({
        done: redactedCount,
        total: matching,
        text: `${counted(redactedCount)} of ${counted(matching)}`,
      }),
    );
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
      `the role ${facts?.name} does not own the audit records: set MIGRATE_DATABASE_URL, see ${LEAK_PAGE}`,
    );
}

/** `portcullis audit verify`: verifies the chains of audit records and their seals. */
export const auditVerify: CommandBody = {
  description: [
    'Checks the hash of each audit record, its link to the record before it in the chain of its process, and the signed',
    'seals. Lists the records and seals that were altered, removed, copied, moved or forged, and exits with 1 if there are',
    'any. Signatures are checked with AUDIT_SIGNING_KEY and AUDIT_SIGNING_KEY_PREVIOUS.',
  ].join(' '),
  flags: {
    from: { help: 'verify records written at this time or later (ISO 8601)' },
    to: { help: 'verify records written before this time (ISO 8601)' },
    checkpoints: { help: 'compare the seals in the database with this file, which AUDIT_CHECKPOINTS=file:PATH wrote' },
  },
  examples: [
    'portcullis audit verify',
    'portcullis audit verify --from 2026-11-01T00:00:00Z --checkpoints /var/audit/seals.ndjson',
  ],
  async run({ flags, env, stack, progress, json, print }) {
    const { config, env: variables } = readConfig(env);
    const [from, to] = [instant(flags, 'from'), instant(flags, 'to')];
    const file = text(flags, 'checkpoints');
    // Opened before the database's snapshot, so that a seal that is added to both later does not count as missing there.
    const keptSeals = file === undefined ? undefined : linesOf(file, statSync(file, { throwIfNoEntry: false }));
    const { verifyAudit } = await import('../../audit/verification/verification.ts');
    const { db } = await openMigrated(config, stack);
    const keys = knownAuditKeys(config, variables);
    const report = await verifyAudit({
      db,
      keys,
      from: from && pgFromInstant(from),
      to: to && pgFromInstant(to),
      keptSeals,
      onProgress: ({ done, total }) => progress.show({ done, total, text: `${counted(done)} of ${counted(total)}` }),
    });
    const { seals, findingCount: problems } = report;
    // For portcullis status. The role of an auditor may read alone.
    if (!from && !to)
      await db
        .unscoped('audit chains span all nodes')
        .run((k) => k.insertInto('audit_verifications').values({ seal: String(seals), problems }))
        .catch(() => undefined);
    print(
      json
        ? `${JSON.stringify({ ...report, signatures_checked: keys.length > 0 })}\n`
        : reportText(report, keys.length),
    );
    return report.findingCount === 0 ? EXIT_OK : EXIT_FAILED;
  },
};

async function* linesOf(file: string, stats: Stats | undefined): AsyncGenerator<string> {
  const end = stats?.isFile() ? Math.max(stats.size - 1, 0) : Number.POSITIVE_INFINITY;
  try {
    yield* createInterface({ input: createReadStream(file, { end }), crlfDelay: Number.POSITIVE_INFINITY });
  } catch (error) {
    throw new CommandError(`${file} cannot be read: ${error instanceof Error ? error.message : String(error)}`);
  }
}

function reportText(
  { records, unchained, chains, seals, unsigned, redactions, findingCount, findings }: VerificationReport,
  keys: number,
): string {
  const lines = findings.map(({ kind, message }) => `${kind.toUpperCase()}: ${printable(message)}`);
  if (findingCount > findings.length)
    lines.push(`${counted(findingCount - findings.length)} more findings are not shown.`);
  for (const { at, by, reason, filter, records: count } of redactions) {
    const which = Object.entries(filter).map(([name, value]) => `--${name} ${value}`);
    lines.push(printable(`REDACTED: ${many(count, 'record')}, ${which.join(' ')}, by ${by} at ${at}: ${reason}`));
  }
  const checked = keys > 0 ? '' : ' Signatures were not checked: AUDIT_SIGNING_KEY is not set.';
  const older = unchained === 0 ? '' : ` Not protected, because they belong to no chain: ${many(unchained, 'record')}.`;
  const bare = unsigned === 0 ? '' : ` Not protected, because there was no key yet: ${many(unsigned, 'seal')}.`;
  const verified = `verified ${many(records, 'record')} in ${many(chains, 'chain')} and ${many(seals, 'seal')}`;
  const verdict =
    findingCount === 0
      ? `OK: ${verified}. Nothing was altered or is missing.`
      : `FAILED: ${verified}. Found ${many(findingCount, 'problem')}.`;
  lines.push(`${verdict}${older}${bare}${checked}`);
  return `${lines.join('\n')}\n`;
}
