import { createReadStream, type Stats, statSync } from 'node:fs';
import { createInterface } from 'node:readline';
import type { VerificationReport } from '../../audit/verification/verification.ts';
import { pgFromInstant } from '../../lib/instants.ts';
import { readConfig } from '../../platform/config/config.ts';
import { knownAuditKeys } from '../../platform/config/secrets.ts';
import { type CommandBody, CommandError, EXIT_FAILED, EXIT_OK } from '../kit/command.ts';
import { instant, text } from '../kit/flags.ts';
import { openMigrated } from '../kit/open-services.ts';
import { counted, many, Progress, printable } from '../kit/progress.ts';

/** `portcullis audit verify`: verifies the chains of audit records and their seals. */
export const auditVerify: CommandBody = {
  description: [
    'Checks the hash of each audit record, its link to the record before it in the chain of its process, and the signed',
    'seals. Lists the records and seals that were altered, removed, copied, moved or forged, and exits with 1 if there are',
    'any. Signatures are checked with AUDIT_SIGNING_KEY and AUDIT_SIGNING_KEY_PREVIOUS.',
  ].join('\n'),
  flags: {
    from: { help: 'verify records written at this time or later (ISO 8601)' },
    to: { help: 'verify records written before this time (ISO 8601)' },
    checkpoints: { help: 'compare the seals in the database with this file, which AUDIT_CHECKPOINTS=file:PATH wrote' },
  },
  examples: [
    'portcullis audit verify',
    'portcullis audit verify --from 2026-11-01T00:00:00Z --checkpoints /var/audit/seals.ndjson',
  ],
  async run({ flags, env, stack, json, print }) {
    const { config, env: variables } = readConfig(env);
    const [from, to] = [instant(flags, 'from'), instant(flags, 'to')];
    const file = text(flags, 'checkpoints');
    // Opened before the database's snapshot, so that a seal that is added to both later does not count as missing there.
    const keptSeals = file === undefined ? undefined : linesOf(file, statSync(file, { throwIfNoEntry: false }));
    const { verifyAudit } = await import('../../audit/verification/verification.ts');
    const { db } = await openMigrated(config, stack);
    const progress = new Progress(process.stderr);
    stack.defer(() => progress.end());
    const keys = knownAuditKeys(config, variables);
    const report = await verifyAudit({
      db,
      keys,
      from: from && pgFromInstant(from),
      to: to && pgFromInstant(to),
      keptSeals,
      onProgress: ({ done, total }) => progress.show({ done, total, text: `${counted(done)} of ${counted(total)}` }),
    });
    progress.end();
    const { seals, findingCount: problems } = report;
    // For portcullis status. The role of an auditor may read alone.
    const keep = () =>
      db
        .unscoped('audit chains span all nodes')
        .run((k) => k.insertInto('audit_verifications').values({ seal: String(seals), problems }));
    if (!from && !to) await keep().catch(() => undefined);
    print(
      json ? `${JSON.stringify({ ...report, signatures_checked: keys.length > 0 })}\n` : textOf(report, keys.length),
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

function textOf(
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
