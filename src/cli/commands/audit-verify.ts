import { createReadStream, type Stats, statSync } from 'node:fs';
import { createInterface } from 'node:readline';
import type { VerificationReport } from '../../audit/verification/verification.ts';
import { pgFromInstant } from '../../lib/instants.ts';
import { readConfig } from '../../platform/config/config.ts';
import { knownAuditKeys } from '../../platform/config/secrets.ts';
import { type CommandBody, CommandError, EXIT_FAILED, EXIT_OK } from '../kit/command.ts';
import { instant, text } from '../kit/flags.ts';
import { openMigrated } from '../kit/open-database.ts';
import { counted, Progress, printable } from '../kit/progress.ts';

/** `portcullis audit verify`: verifies the chains of audit records and their seals. */
export const auditVerify: CommandBody = {
  description: [
    'Checks the hash of each audit record, that each follows on the one before in the chain of its process, and that the',
    'signed seals agree. Ends with 1 and names the first record of each kind that is changed, missing, twice, out of place,',
    'forged, or cut off behind a seal. Signatures are checked by AUDIT_SIGNING_KEY and AUDIT_SIGNING_KEY_PREVIOUS.',
  ].join('\n'),
  flags: {
    from: { help: 'the records of this time or later, in ISO 8601' },
    to: { help: 'those before this time' },
    checkpoints: { help: 'a file of the seals that AUDIT_CHECKPOINTS has kept, which the database must have' },
  },
  examples: [
    'portcullis audit verify',
    'portcullis audit verify --from 2026-11-01T00:00:00Z --checkpoints /var/audit/seals.ndjson',
  ],
  async run({ flags, env, stack, json, print }) {
    const { config, env: variables } = readConfig(env);
    const [from, to] = [instant(flags, 'from'), instant(flags, 'to')];
    const file = text(flags, 'checkpoints');
    // Before the database shows its moment: a seal that is added to both later is not one that the database lacks.
    const keptSeals = file === undefined ? undefined : linesOf(file, statSync(file, { throwIfNoEntry: false }));
    const advice = () => 'stop it first, repeat this, and start it again';
    const { verifyAudit } = await import('../../audit/verification/verification.ts');
    const { db } = await openMigrated(config, { advice }, stack);
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
    print(
      json ? `${JSON.stringify({ ...report, signatures_checked: keys.length > 0 })}\n` : textOf(report, keys.length),
    );
    return report.findingCount === 0 ? EXIT_OK : EXIT_FAILED;
  },
};

async function* linesOf(file: string, found: Stats | undefined): AsyncGenerator<string> {
  const end = found?.isFile() ? Math.max(found.size - 1, 0) : Number.POSITIVE_INFINITY;
  try {
    yield* createInterface({ input: createReadStream(file, { end }), crlfDelay: Number.POSITIVE_INFINITY });
  } catch (error) {
    throw new CommandError(`${file} cannot be read: ${error instanceof Error ? error.message : String(error)}`);
  }
}

function textOf(
  { records, unchained, chains, seals, unsigned, findingCount, findings }: VerificationReport,
  keys: number,
): string {
  const lines = findings.map(({ kind, message }) => `${kind.toUpperCase()}: ${printable(message)}`);
  if (findingCount > findings.length) lines.push(`and ${counted(findingCount - findings.length)} more.`);
  const checked = keys > 0 ? '' : ' No key is set, so that signatures were not checked.';
  const older = unchained === 0 ? '' : ` ${counted(unchained)} records have no chain: they are not protected.`;
  const bare = unsigned === 0 ? '' : ` ${counted(unsigned)} seals are from before the first key: they protect nothing.`;
  const verdict = findingCount === 0 ? 'nothing is changed or missing' : `${counted(findingCount)} findings`;
  lines.push(
    `${counted(records)} records in ${counted(chains)} chains, ${counted(seals)} seals: ${verdict}.${older}${bare}${checked}`,
  );
  return `${lines.join('\n')}\n`;
}
