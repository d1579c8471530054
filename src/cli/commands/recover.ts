import { BusUnavailableError, type GroupLag } from '../../events/bus/event-bus.ts';
import { isoFromPg } from '../../lib/instants.ts';
import { silentLog } from '../../lib/log.ts';
import { readConfig } from '../../platform/config/config.ts';
import { type CommandBody, CommandError, counted, UsageError } from '../kit/command.ts';
import { instantMs } from '../kit/flags.ts';
import { openAdministration } from '../kit/open-services.ts';

/** What was published so long before the restored state may have been applied after it. */
const MARGIN_MS = 60_000;
const ALONE = 'stop it first, because it must not apply events meanwhile';

/** `portcullis recover`: brings everything else in line with a restored database. */
export const recover: CommandBody = {
  description: [
    'Run this after restoring a backup or promoting a lagging replica. TIME is the point the database was restored to, or',
    'any earlier time. Consumers re-read events from one minute before TIME; events that were applied already have no',
    "effect. Subscribers' cursors stay valid. All tokens are revoked, because the database may lack recent revocations:",
    'callers log in again. The gap in the audit records is reported, not filled. First stop every process that applies',
    'events; after a restore, stop every process. You can run this command again.',
  ].join('\n'),
  flags: {
    since: { help: 'time the database was restored to (ISO 8601)', required: 'TIME' },
    'keep-tokens': {
      help: 'do not revoke sessions and tokens; only if no revocation can be missing',
      isSwitch: true,
    },
  },
  examples: [
    'portcullis recover --since 2026-11-21T10:29:50Z',
    'portcullis recover --since 2026-11-21T10:29:50Z --keep-tokens --json',
  ],
  async run(input) {
    const { flags, env, stack, answer } = input;
    const sinceMs = instantMs(flags, 'since') ?? 0;
    if (sinceMs > Date.now()) throw new UsageError('--since must be before now');
    const { db, clientAdministration } = await openAdministration(input, { alone: ALONE });
    const { openBus } = await import('../../app/stores.ts');
    const bus = await openBus(readConfig(env).config, db, silentLog, stack);
    const groups = await bus.rewind?.(sinceMs - MARGIN_MS).catch((error) => {
      if (!(error instanceof BusUnavailableError)) throw error;
      throw new CommandError(
        `${error.message}: nothing was changed. Stop every worker, wait ten seconds and run this again`,
      );
    });
    const everyNode = db.unscoped('the whole database was restored');
    const [audit] = await everyNode.raw((sql) => sql<{ at: string | null }>`select max(at) as at from audit_records`);
    // As on another timeline of the server (`appendEvents`): past what may have been given and lost, also by a tenant
    // that had no event yet.
    const counters = await everyNode.raw(
      (sql) => sql`
        insert into node_event_seq as counter (node_id, seq) select id, 4294967296 from nodes
        on conflict (node_id) do update set seq = (counter.seq / 4294967296 + 1) * 4294967296
        returning node_id`,
    );
    const recovered: Recovered = {
      groups: groups ?? [],
      nodes: counters.length,
      clients: flags['keep-tokens'] === true ? 0 : await clientAdministration.revokeAll(),
      audit_gap: { from: audit?.at ? isoFromPg(audit.at) : null, to: new Date().toISOString() },
    };
    return answer(recovered, summary(recovered));
  },
};

/** What the command has done. */
interface Recovered {
  groups: readonly GroupLag[];
  nodes: number;
  clients: number;
  /** From the newest record that the database has. */
  audit_gap: { from: string | null; to: string };
}

function summary({ groups, nodes, clients, audit_gap: { from, to } }: Recovered): string {
  return [
    ...groups.map(({ groupId, topic, messages }) => `${groupId} re-reads ${counted(messages)} messages of ${topic}.`),
    `New events of ${counted(nodes)} tenants have higher sequence numbers than all cursors.`,
    `Revoked the tokens of ${counted(clients)} clients.`,
    `Audit records from ${from ?? 'the first one'} to ${to} are lost, except records in spools, which are written when their processes start.`,
    '',
  ].join('\n');
}
