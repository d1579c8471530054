import { hash, type KeyObject } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { userInfo } from 'node:os';
import { join } from 'node:path';
import type { ExportManifest } from '../../audit/export/record-export.ts';
import { readConfig } from '../../platform/config/config.ts';
import { knownAuditKeys } from '../../platform/config/secrets.ts';
import { type CommandBody, CommandError, EXIT_FAILED } from '../kit/command.ts';
import { text } from '../kit/flags.ts';
import { Interruption } from '../kit/interruption.ts';
import { openMigrated, openSeals, recorder } from '../kit/open-services.ts';
import { counted, many, Progress } from '../kit/progress.ts';
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
const PAGE = 'docs/operations/audit-export.md';

/** `portcullis audit export`: exports audit records that a filter chooses, with what proves them to others. */
export const auditExport: CommandBody = {
  description: [
    'Writes the audit records that match all given filters to a folder, as CSV and JSON Lines, with a manifest that is signed',
    'by AUDIT_SIGNING_KEY, and the leaves of the records between them. With the checkpoints (AUDIT_CHECKPOINTS) and the',
    `public key anyone can verify them without Portcullis: ${PAGE}.`,
    'Verifies the period like audit verify, and exits with 1 if that has findings. After an interruption repeat the same command.',
  ].join('\n'),
  flags: {
    ...FILTER_FLAGS,
    out: { help: 'new folder for the files, or the one of an interrupted export', required: 'DIR' },
  },
  examples: [
    'portcullis audit export --node ID --since 2026-11-01T00:00:00Z --until 2026-12-01T00:00:00Z --out november',
    'portcullis audit export --client ID --path "/v1/wallets/*" --out wallets --json',
  ],
  async run({ command, flags, env, stack, answer }) {
    const { config, env: variables } = readConfig(env);
    const at = new Date().toISOString();
    const filter = filterOf(flags);
    const folder = text(flags, 'out') ?? '';
    const [key, ...former] = knownAuditKeys(config, variables);
    if (!key) throw new CommandError('set AUDIT_SIGNING_KEY, as the service has it: it signs the manifest');
    const [{ exportAudit }, { ExportError }] = await Promise.all([
      import('../../audit/export/record-export.ts'),
      import('../../audit/export/export-folder.ts'),
    ]);
    const { db } = await openMigrated(config, stack);
    const keys: readonly [KeyObject, ...KeyObject[]] = [key, ...former];
    const seals = await openSeals(config, db, stack, { key: () => key });
    const record = recorder(command, { db, seals, keys: () => keys });
    const asked = { filter: filterFlagsOf(flags), by: userInfo().username, at };
    // An export that is interrupted, or whose end cannot be recorded, leaves this record.
    await record({ filter: asked.filter, until: filter.until ?? at });
    const { signal } = stack.use(new Interruption());
    const progress = new Progress(process.stderr);
    stack.defer(() => progress.end());
    try {
      const manifest = await exportAudit({
        ...{ db, keys, folder, asked, filter: { ...filter, until: filter.until ?? at }, signal },
        onProgress: ({ what, done, total }) =>
          progress.show({ done, total, text: `${what} ${counted(done)} of ${counted(total)} records` }),
      });
      progress.end();
      const { period, records } = manifest;
      const digest = hash('sha256', readFileSync(join(folder, 'manifest.json')));
      await record({ filter: asked.filter, period, records, manifest: digest });
      const exit = answer(manifest, textOf(folder, manifest));
      return manifest.verification.findings === 0 ? exit : EXIT_FAILED;
    } catch (error) {
      if (error instanceof ExportError) throw new CommandError(error.message);
      if (!(error instanceof Error && 'syscall' in error && FILE_CALLS.has(error.syscall))) throw error;
      throw new CommandError(`cannot write to ${folder} (${error.message}): repeat the command once that is possible`);
    }
  },
};

function textOf(folder: string, manifest: ExportManifest): string {
  const { records, positions, chains, unsealed, unchained, verification } = manifest;
  const newer = 'they are newer than the last checkpoint of their process; export again in a minute';
  const lines = [
    `Exported ${many(records, 'record')} to ${folder}, with the leaves of ${many(positions, 'position')} in ${many(chains.length, 'chain')}.`,
    ...(unsealed === 0 ? [] : [`Not proven, because ${newer}: ${many(unsealed, 'record')}.`]),
    ...(unchained === 0 ? [] : [`Not proven, because they belong to no chain: ${many(unchained, 'record')}.`]),
    verification.findings === 0
      ? 'OK: audit verify finds no problem in this period.'
      : `FAILED: audit verify finds ${many(verification.findings, 'problem')} in this period: run it for the list.`,
    `Erasure, redaction and retention do not reach this copy: ${PAGE}.`,
  ];
  return lines.map((line) => `${line}\n`).join('');
}
