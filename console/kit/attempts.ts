import { ask } from '../api.ts';
import { AuditRecordsDocument, type AuditRecordsQuery, LoginLockDocument, type LoginLockQuery } from '../generated/graphql.ts';
import { html } from '../html.ts';
import { linkTo } from '../router.ts';
import { nodesOf } from './list.ts';
import { useAsk } from './page.ts';
import { clock, counted } from './text.ts';

const DAY_MS = 24 * 3_600_000;
const READ = 100;

type AuditRecord = AuditRecordsQuery['auditRecords']['edges'][number]['node'];

/** The wrong passwords of a person within the last day, up to a hundred, and when the last lock that they have caused ends or has ended. */
type Attempts = NonNullable<Awaited<ReturnType<typeof attemptsAt>>>;

const reasonOf = ({ headers }: AuditRecord) => (headers as Record<string, unknown> | null)?.[':reason'];

/** Returns the end of the last lock by these attempts, which are in the order of their times: at the console each address is locked by its own. */
function lockOf(attempts: readonly AuditRecord[], { failures, seconds }: LoginLockQuery['loginLock']): string | undefined {
  const origins = Map.groupBy(attempts, ({ path, realIp }) => (path.endsWith('/oauth/token') ? '' : realIp));
  const ends = [...origins.values()].flatMap((of) =>
    of.flatMap(({ at }, last) => {
      const [endMs, first] = [Date.parse(at) + seconds * 1_000, of[last - failures + 1]];
      return first && Date.parse(at) - Date.parse(first.at) < seconds * 1_000 ? [new Date(endMs).toISOString()] : [];
    }),
  );
  return ends.sort().at(-1);
}

/** Returns what the audit attributes to a person: wrong passwords at the console and at the token endpoint within the last day; undefined without any. */
async function attemptsAt({ subject }: { subject: string }) {
  const since = new Date(Date.now() - DAY_MS).toISOString();
  const [{ auditRecords }, { loginLock }] = await Promise.all([
    ask(AuditRecordsDocument, { filter: { subject, since, statusClass: 4 }, first: READ }),
    ask(LoginLockDocument, {}),
  ]);
  const wrong = nodesOf(auditRecords)
    .filter((record) => reasonOf(record) === 'wrong_password')
    .reverse();
  const [first] = wrong;
  if (!first) return undefined;
  return { count: wrong.length, since: first.at, addresses: [...new Set(wrong.map(({ realIp }) => realIp))], lockedUntil: lockOf(wrong, loginLock) };
}

/** Asks for the wrong passwords of a person within the last day, where one may read the audit. */
export const useAttempts = (subject: string | undefined, turn?: number) => useAsk(attemptsAt, subject === undefined ? undefined : { subject }, turn);

/** `5 wrong since 06:57 from 192.0.2.7`, with a link to the records. */
export function AttemptsLine({ subject, of: { count, since, addresses } }: { subject: string; of: Attempts }) {
  const [first = '', ...others] = addresses;
  const from = others.length === 0 ? first : `${addresses.length} addresses, first ${first}`;
  return html`<a href=${linkTo(['audit'], { subject, status: '4', since })}>${counted(count, 'wrong password')} since ${clock(since)} from ${from}</a>`;
}
